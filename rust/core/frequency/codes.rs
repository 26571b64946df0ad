//! Integer codes of a domain, in and out.

use crate::Error;
use crate::parameters::DomainSize;

/// An integer type that answers come in.
pub trait Code: Copy + Send + Sync + 'static {
    /// The code as an unsigned number; negative codes become huge.
    fn index(self) -> u64;

    /// The code as it was given, for error messages.
    fn signed(self) -> i64;

    /// Whether every code is below `size`, which is at most 2^32: written so that it vectorises.
    fn all_below(codes: &[Self], size: u64) -> bool;
}

/// An integer type that reports go out in.
pub trait ReportCode: Code + Default {
    /// The number of different codes.
    const RANGE: u64;

    /// The code of an index below [`Self::RANGE`].
    fn from_index(index: u64) -> Self;
}

macro_rules! unsigned_code {
    ($($integer:ty),*) => {$(
        impl Code for $integer {
            #[inline(always)]
            fn index(self) -> u64 {
                u64::from(self)
            }

            fn signed(self) -> i64 {
                i64::from(self)
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

unsigned_code!(u8, u16, u32);

impl Code for i64 {
    #[inline(always)]
    #[expect(clippy::cast_sign_loss, reason = "negative codes must fail every comparison")]
    fn index(self) -> u64 {
        self as u64
    }

    fn signed(self) -> i64 {
        self
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
        value: codes.get(index).map_or(0, |code| code.signed()),
        domain_size: domain.get(),
        offenders: codes.iter().filter(|code| !inside(code)).count(),
    }
}
