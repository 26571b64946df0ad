//! Allocation that reports an error if there is not enough memory.

use crate::{Error, Result};

/// Room for that many numbers.
pub(crate) fn room<T: Clone>(length: usize, value: T) -> Result<Vec<T>> {
    let mut numbers = Vec::new();
    numbers.try_reserve_exact(length).map_err(|_| Error::Accounting {
        argument: "length",
        value: length as f64,
        expected: "so small that the numbers fit in memory",
    })?;
    numbers.resize(length, value);
    Ok(numbers)
}
