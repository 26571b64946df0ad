//! Scans byte by byte: any text, and what is wrong with it.

use super::{Ends, FEED, Fault, QUOTE, RETURN, Reason, Rules, Stretch};

/// A row that is whole.
struct Row {
    end: usize,
    empty: bool,
    lines: usize,
}

pub(super) fn scan(data: &[u8], rules: Rules) -> Stretch {
    let mut found = Stretch { ends: rules.ends, ..Stretch::default() };
    let most = rules.most.unwrap_or(usize::MAX);
    while found.end < data.len() && found.rows < most {
        match row(data, found.end, rules, &mut found.ends) {
            Ok(Some(row)) => {
                found.end = row.end;
                found.lines += row.lines;
                found.empty += usize::from(row.empty);
                found.rows += usize::from(!row.empty);
            }
            Ok(None) => break,
            Err(fault) => {
                found.fault = Some(Fault { lines: found.lines + fault.lines, ..fault });
                break;
            }
        }
    }
    found
}

/// The row that begins at a place; none if it goes on beyond the data.
fn row(data: &[u8], start: usize, rules: Rules, ends: &mut Ends) -> Result<Option<Row>, Fault> {
    let (mut place, mut field, mut lines) = (start, 0, 0);
    loop {
        if data.get(place) == Some(&QUOTE) {
            let unclosed = Fault { reason: Reason::Unclosed, field, lines };
            match quoted(data, place + 1, &mut lines) {
                Ok(Some(after)) => place = after,
                Ok(None) if rules.last => return Err(unclosed),
                Ok(None) => return Ok(None),
                Err(()) => return Err(Fault { reason: Reason::Zero, field, lines }),
            }
            let next = data.get(place);
            if next.is_some_and(|&byte| byte != rules.delimiter && byte != FEED && byte != RETURN) {
                return Err(Fault { reason: Reason::Closed, ..unclosed });
            }
        }
        let rest = data.get(place..).unwrap_or_default();
        let stops = |byte: &u8| *byte == rules.delimiter || [FEED, RETURN, 0].contains(byte);
        let Some(length) = rest.iter().position(stops) else {
            let whole = Row { end: data.len(), empty: false, lines };
            return if rules.last { checked(whole, field, rules) } else { Ok(None) };
        };
        place += length;
        if rest[length] == rules.delimiter {
            (place, field) = (place + 1, field + 1);
            continue;
        }
        let next = rest.get(length + 1);
        let (kind, width) = match (rest[length], next) {
            (0, _) => return Err(Fault { reason: Reason::Zero, field, lines }),
            (FEED, _) => (Ends::Feed, 1),
            (_, Some(&FEED)) => (Ends::Feed, 2),
            (_, None) if !rules.last => return Ok(None),
            _ => (Ends::Return, 1),
        };
        if *ends != Ends::Unknown && *ends != kind {
            return Err(Fault { reason: Reason::Ends, field, lines });
        }
        *ends = kind;
        let whole = Row { end: place + width, empty: place == start, lines: lines + 1 };
        return checked(whole, field, rules);
    }
}

/// The place after the quote that closes a field, whose text begins at a place.
fn quoted(data: &[u8], start: usize, lines: &mut usize) -> Result<Option<usize>, ()> {
    let mut place = start;
    while let Some(&byte) = data.get(place) {
        let next = data.get(place + 1);
        match byte {
            QUOTE if next == Some(&QUOTE) => place += 1,
            QUOTE => return Ok(Some(place + 1)),
            0 => return Err(()),
            FEED => *lines += 1,
            RETURN if next != Some(&FEED) => *lines += 1,
            _ => {}
        }
        place += 1;
    }
    Ok(None)
}

fn checked(row: Row, field: usize, rules: Rules) -> Result<Option<Row>, Fault> {
    match rules.fields {
        Some(fields) if !row.empty && field + 1 != fields => {
            Err(Fault { reason: Reason::Fields(field + 1), field, lines: 0 })
        }
        _ => Ok(Some(row)),
    }
}
