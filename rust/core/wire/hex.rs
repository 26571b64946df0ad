//! Bytes as lower-case hexadecimal digits, two for each byte.

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Reads digits into all bytes of a slice; says no where they are others, or of another number.
pub(crate) fn read_into(digits: &[u8], bytes: &mut [u8]) -> bool {
    let digit = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = digits.as_chunks::<2>();
    pairs.len() == bytes.len()
        && rest.is_empty()
        && bytes.iter_mut().zip(pairs).all(|(byte, &[high, low])| {
            let found = digit(high).zip(digit(low)).map(|(high, low)| (high << 4) | low);
            *byte = found.unwrap_or(0);
            found.is_some()
        })
}

/// Reads digits that stand for so many bytes.
pub(crate) fn read<const N: usize>(digits: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    read_into(digits.as_bytes(), &mut bytes).then_some(bytes)
}

/// Writes the digits of bytes.
pub(crate) fn write(bytes: &[u8], into: &mut String) {
    for byte in bytes {
        let [high, low] = [byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)]);
        into.push(high.into());
        into.push(low.into());
    }
}

/// The digits of bytes.
pub(crate) fn text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    write(bytes, &mut text);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_lower_case_and_of_the_right_number() {
        assert_eq!(read("00ff1a"), Some([0, 255, 26]));
        assert_eq!(text(&[0, 255, 26]), "00ff1a");
        for digits in ["00ff1", "00ff1a0", "00fF1a", "00ff1g", "00 f1a", "", "00ff\u{e9}"] {
            assert_eq!(read::<3>(digits), None, "{digits}");
        }
    }
}
