//! Integer codes of a domain, as input and as output.

use core::ops::Range;

use crate::Error;
use crate::parameters::DomainSize;

/// An integer type of answers.
pub trait Code: Copy + Send + Sync + 'static {
    /// The code as an unsigned number; a negative code becomes a huge one.
    fn index(self) -> u64;

    /// Wraps a slice of this type.
    fn codes(codes: &[Self]) -> Codes<'_>;

    /// Tells whether every code is below `size`, which is at most 2^32. It is written so that the
    /// compiler vectorises it.
    fn all_below(codes: &[Self], size: u64) -> bool;
}

/// Codes of any of the integer types, so that code over them is compiled only once.
#[derive(Debug, Clone, Copy)]
pub enum Codes<'a> {
    /// Codes of one byte.
    U8(&'a [u8]),
    /// Codes of two bytes.
    U16(&'a [u16]),
    /// Codes of four bytes.
    U32(&'a [u32]),
    /// Codes of eight bytes.
    I64(&'a [i64]),
}

/// Evaluates an expression with the slice of [`Codes`].
macro_rules! with_slice {
    ($codes:expr, |$slice:ident| $body:expr) => {
        match $codes {
            Codes::U8($slice) => $body,
            Codes::U16($slice) => $body,
            Codes::U32($slice) => $body,
            Codes::I64($slice) => $body,
        }
    };
}

impl Codes<'_> {
    /// The number of codes.
    #[must_use]
    pub const fn len(self) -> usize {
        with_slice!(self, |codes| codes.len())
    }

    /// Tells whether there are no codes.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Whether every code of a range is in the domain.
    pub(super) fn inside(self, range: Range<usize>, domain: DomainSize) -> bool {
        with_slice!(self, |codes| all_inside(&codes[range], domain))
    }

    /// Codes of a range, at most as many as the buffer holds.
    pub(super) fn gather(self, range: Range<usize>, buffer: &mut [u64]) -> &[u64] {
        let length = range.len().min(buffer.len());
        with_slice!(self, |codes| fill(codes[range].iter().map(|code| code.index()), buffer));
        &buffer[..length]
    }

    /// The codes at some places after the first, at most as many as the buffer holds.
    pub(super) fn gather_at<'a>(
        self,
        first: usize,
        places: &[u16],
        buffer: &'a mut [u64],
    ) -> &'a [u64] {
        let length = places.len().min(buffer.len());
        with_slice!(self, |codes| {
            let codes = &codes[first..];
            fill(places.iter().map(|&place| codes[usize::from(place)].index()), buffer);
        });
        &buffer[..length]
    }

    /// The error for codes some of which are outside the domain.
    #[cold]
    pub(super) fn outside(self, argument: &'static str, domain: DomainSize) -> Error {
        with_slice!(self, |codes| outside(argument, codes, domain))
    }
}

fn fill(codes: impl Iterator<Item = u64>, buffer: &mut [u64]) {
    for (slot, code) in buffer.iter_mut().zip(codes) {
        *slot = code;
    }
}

/// An integer type of reports.
pub trait ReportCode: Code + Default {
    /// The number of different values.
    const RANGE: u64;

    /// The code of an index below [`Self::RANGE`].
    fn from_index(index: u64) -> Self;
}

macro_rules! unsigned_code {
    ($($integer:ty: $variant:ident),*) => {$(
        impl Code for $integer {
            fn codes(codes: &[Self]) -> Codes<'_> {
                Codes::$variant(codes)
            }

            #[inline(always)]
            fn index(self) -> u64 {
                u64::from(self)
            }

            #[inline]
            fn all_below(codes: &[Self], size: u64) -> bool {
                u64::from(codes.iter().fold(0, |most, &code| most.max(code))) < size
            }
        }

        impl ReportCode for $integer {
            const RANGE: u64 = <$integer>::MAX as u64 + 1;

            #[inline(always)]
            #[expect(clippy::cast_possible_truncation, reason = "in range")]
            fn from_index(index: u64) -> Self {
                index as $integer
            }
        }
    )*};
}

unsigned_code!(u8: U8, u16: U16, u32: U32);

impl Code for i64 {
    fn codes(codes: &[Self]) -> Codes<'_> {
        Codes::I64(codes)
    }

    #[inline(always)]
    #[expect(clippy::cast_sign_loss, reason = "negative codes must fail every comparison")]
    fn index(self) -> u64 {
        self as u64
    }

    #[inline]
    fn all_below(codes: &[Self], size: u64) -> bool {
        // The sign of one of the two is set exactly if the code is outside.
        let last = size.cast_signed() - 1;
        codes.iter().fold(0, |signs, &code| signs | code | last.wrapping_sub(code)) >= 0
    }
}

/// Whether every code of a slice is in the domain.
pub(super) fn all_inside<C: Code>(codes: &[C], domain: DomainSize) -> bool {
    C::all_below(codes, domain.get())
}

/// The error for a slice in which some code is outside.
#[cold]
pub(crate) fn outside<C: Code>(argument: &'static str, codes: &[C], domain: DomainSize) -> Error {
    let inside = |code: &C| code.index() < domain.get();
    let index = codes.iter().position(|code| !inside(code)).unwrap_or(0);
    Error::CodeOutsideDomain {
        argument,
        index,
        domain_size: domain.get(),
        offenders: codes.iter().filter(|code| !inside(code)).count(),
    }
}
