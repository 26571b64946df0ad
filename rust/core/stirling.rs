//! Stirling's approximation of factorials.

/// `ln n!` less Stirling's approximation `n ln n - n + ln(2 pi n) / 2`.
pub(crate) fn stirling_error(count: u64) -> f64 {
    if let Some(&known) = usize::try_from(count).ok().and_then(|count| STIRLING.get(count)) {
        return known;
    }
    let n = count as f64;
    let square = n * n;
    (1.0 / 12.0
        - (1.0 / 360.0
            - (1.0 / 1260.0 - (1.0 / 1680.0 - 1.0 / (1188.0 * square)) / square) / square)
            / square)
        / n
}

/// The errors for counts 1 to 16; that of 0 is never asked for.
const STIRLING: [f64; 17] = [
    0.0,
    0.081_061_466_795_327_26,
    0.041_340_695_955_409_3,
    0.027_677_925_684_998_34,
    0.020_790_672_103_765_093,
    0.016_644_691_189_821_193,
    0.013_876_128_823_070_748,
    0.011_896_709_945_891_77,
    0.010_411_265_261_972_096,
    0.009_255_462_182_712_733,
    0.008_330_563_433_362_87,
    0.007_573_675_487_951_841,
    0.006_942_840_107_209_53,
    0.006_408_994_188_004_207,
    0.005_951_370_112_758_847_5,
    0.005_554_733_551_962_801,
    0.005_207_655_919_609_640_4,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_fall_by_the_series_of_their_differences() {
        // (n + 1/2) ln (1 + 1/n) - 1 is the sum of 1 / ((2k + 1) (2n + 1)^(2k)) over k from 1.
        let mut error = stirling_error(2_000);
        for count in (1..2_000_u32).rev() {
            let odd = f64::from(2 * count + 1);
            let mut power = 1.0;
            let mut fall = 0.0;
            for k in 1..=20_u32 {
                power /= odd * odd;
                fall += power / f64::from(2 * k + 1);
            }
            error += fall;
            let ours = stirling_error(count.into());
            assert!((ours - error).abs() < 2e-16, "{count}: {ours} not {error}");
        }
    }
}
