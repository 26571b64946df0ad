//! Binding of `rows`.

use pyo3::prelude::*;
use turnout_core::rows::{self, Ends, Reason, Rules};

use crate::arrays::vector;
use crate::errors::{Failure, Result};
use crate::pool::run_if;

/// How rows end: not known yet, with a line feed, with a carriage return alone.
const ENDS: [Ends; 3] = [Ends::Unknown, Ends::Feed, Ends::Return];

/// What is wrong with a row: why, which field, and after how many lines.
type Fault = (&'static str, usize, usize);

/// The whole rows at the beginning of a stretch of text: how many bytes, rows, empty rows and
/// lines, how rows end, and what is wrong with the next row.
#[pyfunction]
pub(crate) fn scan_rows(
    data: &Bound<'_, PyAny>,
    delimiter: u8,
    last: bool,
    ends: u8,
    fields: Option<usize>,
    most: Option<usize>,
) -> Result<(usize, usize, usize, usize, usize, Option<Fault>)> {
    let py = data.py();
    let bytes = &*vector("data", data)?;
    let refused = || Failure::Value(format!("ends must be an integer from 0 to 2, got {ends}"));
    let ends = *ENDS.get(usize::from(ends)).ok_or_else(refused)?;
    let rules = Rules { delimiter, last, ends, fields, most };
    let found = run_if(py, false, || rows::scan(bytes, rules))?;
    let fault = found.fault.map(|fault| (reason(fault.reason), fault.field, fault.lines));
    let ends = ENDS.iter().position(|&ends| ends == found.ends).unwrap_or(0);
    Ok((found.end, found.rows, found.empty, found.lines, ends, fault))
}

fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Unclosed => "unclosed",
        Reason::Closed => "closed",
        Reason::Zero => "zero",
        Reason::Ends => "ends",
        Reason::Fields(_) => "fields",
    }
}
