use proptest::prelude::*;

use super::*;

const RULES: Rules =
    Rules { delimiter: b',', last: true, ends: Ends::Unknown, fields: None, most: None };

/// Every kind of instructions that this machine has and that has a kernel of its own.
fn levels() -> Vec<Level> {
    let mut all = vec![Level::baseline(), Level::new()];
    #[cfg(target_arch = "x86_64")]
    {
        all.extend(Level::new().as_sse4_2().map(Level::Sse4_2));
        all.extend(Level::new().as_avx2().map(Level::Avx2));
    }
    all
}

/// A second reader, by other means: a machine of states that splits text into rows of fields.
fn split(data: &[u8], delimiter: u8) -> std::result::Result<Vec<Vec<Vec<u8>>>, Reason> {
    #[derive(PartialEq)]
    enum State {
        Begin,
        Plain,
        Quoted,
        Quote,
    }
    let (mut rows, mut row, mut field, mut state) = (vec![], vec![], vec![], State::Begin);
    let mut ends = Ends::Unknown;
    let mut bytes = data.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        let escaped = state == State::Quote && byte == QUOTE;
        if byte == 0 && state != State::Quote {
            return Err(Reason::Zero);
        } else if escaped || state == State::Quoted && byte != QUOTE {
            field.push(byte);
            state = State::Quoted;
        } else if state == State::Quoted {
            state = State::Quote;
        } else if state == State::Begin && byte == QUOTE {
            state = State::Quoted;
        } else if byte == delimiter {
            row.push(std::mem::take(&mut field));
            state = State::Begin;
        } else if byte == FEED || byte == RETURN {
            let kind = if byte == FEED || bytes.next_if_eq(&FEED).is_some() {
                Ends::Feed
            } else {
                Ends::Return
            };
            if ends != Ends::Unknown && ends != kind {
                return Err(Reason::Ends);
            }
            ends = kind;
            if state != State::Begin || !row.is_empty() {
                row.push(std::mem::take(&mut field));
            }
            rows.push(std::mem::take(&mut row));
            state = State::Begin;
        } else if state == State::Quote {
            return Err(Reason::Closed);
        } else {
            field.push(byte);
            state = State::Plain;
        }
    }
    if state == State::Quoted {
        return Err(Reason::Unclosed);
    }
    if state != State::Begin || !row.is_empty() {
        row.push(field);
        rows.push(row);
    }
    Ok(rows)
}

/// Pieces of text in which everything odd happens often, and long stretches in which nothing does.
fn text() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        20 => "[ab,;]{1,9}",
        10 => Just("\n".to_owned()),
        5 => Just("\r\n".to_owned()),
        5 => Just(",\"a, \"\"b\"\"\nc\"".to_owned()),
        5 => Just("\"\"".to_owned()),
        3 => Just("\"".to_owned()),
        1 => Just("\r".to_owned()),
        1 => Just("\0".to_owned()),
        2 => "[a,]{60,130}",
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat().into_bytes())
}

/// Text that is right: rows of fields, some of them quoted, and how it was written.
fn written() -> impl Strategy<Value = (Vec<Vec<String>>, Vec<u8>)> {
    let field = prop_oneof![4 => "[a-d]{0,12}", 1 => "[ab,\"\r\n]{0,9}"];
    let rows = prop::collection::vec(prop::collection::vec(field, 2..5), 0..60);
    (rows, prop::sample::select(vec!["\n", "\r\n"]), any::<bool>()).prop_map(|(rows, end, all)| {
        let quoted = |field: &String| {
            let needed = field.contains([',', '"', '\r', '\n']);
            let inner = field.replace('"', "\"\"");
            if all || needed { format!("\"{inner}\"") } else { inner }
        };
        let lines =
            rows.iter().map(|row| row.iter().map(quoted).collect::<Vec<_>>().join(",") + end);
        let text = lines.collect::<String>().into_bytes();
        (rows, text)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn what_is_fast_is_what_is_exact(
        data in text(), last in any::<bool>(), semicolon in any::<bool>(), feed in any::<bool>(),
    ) {
        let delimiter = if semicolon { b';' } else { b',' };
        let ends = if feed { Ends::Feed } else { Ends::Unknown };
        let rules = Rules { delimiter, last, ends, ..RULES };
        let expected = exact::scan(&data, rules);
        for level in levels() {
            if let Some(found) = fast::scan(level, &data, rules) {
                prop_assert_eq!(found, expected);
            }
        }
        prop_assert_eq!(scan(&data, rules)?, expected);
    }

    #[test]
    fn rows_are_those_of_another_reader(data in text()) {
        let found = scan(&data, RULES)?;
        match split(&data, b',') {
            Err(reason) => prop_assert_eq!(found.fault.map(|fault| fault.reason), Some(reason)),
            Ok(rows) => {
                let empty = rows.iter().filter(|row| row.is_empty()).count();
                prop_assert_eq!(found.fault, None);
                prop_assert_eq!((found.rows, found.empty), (rows.len() - empty, empty));
                prop_assert_eq!(found.end, data.len());
            }
        }
    }

    #[test]
    fn rows_that_are_written_are_counted((rows, data) in written()) {
        for level in levels() {
            let found = fast::scan(level, &data, RULES);
            // Only a carriage return alone, in a field, takes a closer look.
            let alone = rows.concat().iter().any(|field| field.contains('\r'));
            prop_assert!(found.is_some() || alone);
            let found = found.unwrap_or_else(|| exact::scan(&data, RULES));
            prop_assert_eq!((found.rows, found.empty, found.fault), (rows.len(), 0, None));
        }
        let counted = Rules { fields: Some(3), ..RULES };
        let wrong = rows.iter().find(|row| row.len() != 3).map(|row| Reason::Fields(row.len()));
        prop_assert_eq!(scan(&data, counted)?.fault.map(|fault| fault.reason), wrong);
    }

    #[test]
    fn pieces_add_up(data in text(), step in 1_usize..200) {
        let whole = scan(&data, RULES)?;
        let (mut begin, mut end, mut ends) = (0, 0, Ends::Unknown);
        let (mut rows, mut empty, mut lines) = (0, 0, 0);
        let mut fault = None;
        while fault.is_none() && end < data.len() {
            end = data.len().min(end + step);
            let rules = Rules { last: end == data.len(), ends, ..RULES };
            let found = scan(&data[begin..end], rules)?;
            (begin, ends) = (begin + found.end, found.ends);
            fault = found.fault.map(|fault| Fault { lines: fault.lines + lines, ..fault });
            (rows, empty, lines) = (rows + found.rows, empty + found.empty, lines + found.lines);
        }
        prop_assert_eq!(
            (begin, rows, empty, lines, fault),
            (whole.end, whole.rows, whole.empty, whole.lines, whole.fault)
        );
    }
}

fn fault(text: &str) -> Option<(Reason, usize, usize)> {
    let found = scan(text.as_bytes(), Rules { fields: Some(2), ..RULES }).ok()?;
    found.fault.map(|fault| (fault.reason, fault.field, fault.lines))
}

#[test]
fn faults_say_where() {
    assert_eq!(fault("a,b\n1,\"x\ny\"\n2,\"z\n3,z\n"), Some((Reason::Unclosed, 1, 3)));
    assert_eq!(fault("\"a\nb\"c,d\n"), Some((Reason::Closed, 0, 0)));
    assert_eq!(fault("\"a\rb\nc\",\"d\"e\n"), Some((Reason::Closed, 1, 2)));
    assert_eq!(fault("a,b\nc,\0\n"), Some((Reason::Zero, 1, 1)));
    assert_eq!(fault("a,\"\n\0\"\n"), Some((Reason::Zero, 1, 1)));
    assert_eq!(fault("a,b\nc,d\re,f\n"), Some((Reason::Ends, 1, 1)));
    assert_eq!(fault("a,b\rc,d\ne,f\r"), Some((Reason::Ends, 1, 1)));
    assert_eq!(fault("a,b\n\nc\n"), Some((Reason::Fields(1), 0, 2)));
    assert_eq!(fault("a,b\n1,2,3"), Some((Reason::Fields(3), 2, 1)));
    assert_eq!(fault("a\"b,\"\"\n,\"\"\"\"\n"), None);
}

#[test]
fn carriage_returns_alone_end_rows_where_nothing_else_does() -> Result<()> {
    let found = scan(b"a,b\r\"c\n\",d\r\re,f", RULES)?;
    assert_eq!((found.rows, found.empty, found.lines, found.ends), (3, 1, 4, Ends::Return));
    let half = scan(b"a,b\r", Rules { last: false, ..RULES })?;
    assert_eq!((half.end, half.rows, half.ends), (0, 0, Ends::Unknown));
    Ok(())
}

#[test]
fn no_more_rows_are_looked_at_than_wanted() -> Result<()> {
    let text = b"\n\"a\n\",b\n\nc,d\ne,\"f";
    for (most, end, rows, empty) in [(0, 0, 0, 0), (1, 8, 1, 1), (2, 13, 2, 2)] {
        let found = scan(text, Rules { most: Some(most), ..RULES })?;
        assert_eq!((found.end, found.rows, found.empty, found.fault), (end, rows, empty, None));
    }
    assert!(scan(text, Rules { most: Some(3), ..RULES })?.fault.is_some());
    Ok(())
}

#[test]
fn delimiters_that_mean_something_else_are_refused() {
    for delimiter in [0, b'"', b'\n', b'\r'] {
        assert!(scan(b"", Rules { delimiter, ..RULES }).is_err());
    }
}
