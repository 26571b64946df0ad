//! The presentation language of RFC 8446, section 3: how fields are written as bytes and read back.
//!
//! [`layout!`] lists the fields of a message once, and this list both reads and writes it. Messages
//! that are read borrow from the input, so a false length costs nothing, and no message contains
//! itself.

use super::error::{Error, Result};

/// Bytes that are being read as a message.
pub struct Input<'a> {
    message: &'static str,
    rest: &'a [u8],
    length: usize,
}

impl<'a> Input<'a> {
    pub(super) fn new(message: &'static str, bytes: &'a [u8]) -> Self {
        Self { message, rest: bytes, length: bytes.len() }
    }

    pub(super) fn malformed(&self, reason: &'static str) -> Error {
        Error::Malformed { message: self.message, reason, place: self.length - self.rest.len() }
    }

    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) =
            self.rest.split_at_checked(count).ok_or_else(|| self.malformed("it ends too early"))?;
        self.rest = rest;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (taken, rest) =
            self.rest.split_first_chunk().ok_or_else(|| self.malformed("it ends too early"))?;
        self.rest = rest;
        Ok(*taken)
    }

    /// So many bytes of this input, as an input of their own.
    fn part(&mut self, count: usize) -> Result<Self> {
        let rest = self.take(count)?;
        Ok(Self { message: self.message, rest, length: self.length - self.rest.len() })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn finish(&self) -> Result<()> {
        if self.is_empty() { Ok(()) } else { Err(self.malformed("bytes are left over")) }
    }
}

/// A type with an encoding.
pub trait Wire<'a>: Sized {
    /// Reads one value, and no byte more.
    #[doc(hidden)]
    fn read(input: &mut Input<'a>) -> Result<Self>;

    /// Writes the value at the end of `out`.
    #[doc(hidden)]
    fn write(&self, out: &mut Vec<u8>) -> Result<()>;
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl Wire<'_> for $type {
            fn read(input: &mut Input<'_>) -> Result<Self> {
                input.array().map(Self::from_be_bytes)
            }

            fn write(&self, out: &mut Vec<u8>) -> Result<()> {
                out.extend_from_slice(&self.to_be_bytes());
                Ok(())
            }
        }
    )*};
}

integers!(u8, u16, u32, u64);

impl<const N: usize> Wire<'_> for [u8; N] {
    fn read(input: &mut Input<'_>) -> Result<Self> {
        input.array()
    }

    fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(self);
        Ok(())
    }
}

/// A field that says how long it is, in an integer of so many bytes before it.
fn length(input: &mut Input<'_>, bytes: usize) -> Result<usize> {
    let digits = input.take(bytes)?;
    let length = digits.iter().fold(0_u64, |length, digit| length << 8 | u64::from(*digit));
    usize::try_from(length).map_err(|_| input.malformed("it ends too early"))
}

/// Writes a field behind its length.
fn behind_length(
    out: &mut Vec<u8>,
    bytes: usize,
    least: usize,
    write: impl FnOnce(&mut Vec<u8>) -> Result<()>,
) -> Result<()> {
    let start = out.len();
    out.resize(start + bytes, 0);
    write(out)?;
    let length = out.len() - start - bytes;
    let digits = u64::try_from(length).unwrap_or(u64::MAX).to_be_bytes();
    let (zeros, digits) = digits.split_at(digits.len() - bytes);
    if zeros.iter().any(|digit| *digit != 0) || length < least {
        return Err(Error::Value {
            what: "a field of a message",
            expected: match (bytes, least) {
                (1, 0) => "at most 255 bytes",
                (1, _) => "1 to 255 bytes",
                (2, 0) => "at most 65,535 bytes",
                (2, _) => "1 to 65,535 bytes",
                (_, 0) => "less than 2^32 bytes",
                _ => "at least one byte and less than 2^32",
            },
            given: format!("{length} bytes"),
        });
    }
    out[start..start + bytes].copy_from_slice(digits);
    Ok(())
}

/// `opaque name<LEAST..2^(8 BYTES)-1>`.
pub(super) struct Opaque<const BYTES: usize, const LEAST: usize>;

impl<const BYTES: usize, const LEAST: usize> Opaque<BYTES, LEAST> {
    pub(super) fn read<'a>(input: &mut Input<'a>) -> Result<&'a [u8]> {
        let length = length(input, BYTES)?;
        if length < LEAST {
            return Err(input.malformed("a field is empty that must not be"));
        }
        input.take(length)
    }

    pub(super) fn write(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
        behind_length(out, BYTES, LEAST, |out| {
            out.extend_from_slice(value);
            Ok(())
        })
    }
}

/// `Type name<0..2^(8 BYTES)-1>`: a list behind its length in bytes.
pub(super) struct List<const BYTES: usize, const LEAST: usize>;

impl<const BYTES: usize, const LEAST: usize> List<BYTES, LEAST> {
    pub(super) fn read<'a, T: Wire<'a>>(input: &mut Input<'a>) -> Result<Vec<T>> {
        let length = length(input, BYTES)?;
        if length < LEAST {
            return Err(input.malformed("a list is empty that must not be"));
        }
        Rest::read(&mut input.part(length)?)
    }

    pub(super) fn write<'a, T: Wire<'a>>(value: &[T], out: &mut Vec<u8>) -> Result<()> {
        behind_length(out, BYTES, LEAST, |out| Rest::write(value, out))
    }
}

/// `Type name[message_length]`: a list up to the end of the message.
pub(super) struct Rest;

impl Rest {
    pub(super) fn read<'a, T: Wire<'a>>(input: &mut Input<'a>) -> Result<Vec<T>> {
        let mut values = Vec::new();
        while !input.is_empty() {
            values.push(T::read(input)?);
        }
        Ok(values)
    }

    pub(super) fn write<'a, T: Wire<'a>>(value: &[T], out: &mut Vec<u8>) -> Result<()> {
        value.iter().try_for_each(|one| one.write(out))
    }
}

pub(super) type Opaque8 = Opaque<1, 1>;
pub(super) type Opaque16 = Opaque<2, 0>;
pub(super) type Filled16 = Opaque<2, 1>;
pub(super) type Opaque32 = Opaque<4, 0>;
pub(super) type Filled32 = Opaque<4, 1>;
pub(super) type List16 = List<2, 0>;
pub(super) type FilledList16 = List<2, 1>;
pub(super) type List32 = List<4, 0>;

/// The fields of a message in their order, each with its form where its type does not say it.
macro_rules! layout {
    ($name:ident $(<$life:lifetime>)?: $($field:ident $(as $form:ident)?),* $(,)?) => {
        impl<'a> $crate::dap::codec::Wire<'a> for $name $(<$life>)? {
            fn read(input: &mut $crate::dap::codec::Input<'a>) -> $crate::dap::Result<Self> {
                Ok(Self { $($field: layout!(@read input $($form)?)),* })
            }

            fn write(&self, out: &mut Vec<u8>) -> $crate::dap::Result<()> {
                $(layout!(@write &self.$field, out $(, $form)?);)*
                Ok(())
            }
        }

        impl<'a> $crate::dap::Message<'a> for $name $(<$life>)? {
            const NAME: &'static str = stringify!($name);
        }
    };
    (@read $input:ident) => { $crate::dap::codec::Wire::read($input)? };
    (@read $input:ident $form:ident) => { $crate::dap::codec::$form::read($input)? };
    (@write $value:expr, $out:ident) => { $crate::dap::codec::Wire::write($value, $out)? };
    (@write $value:expr, $out:ident, $form:ident) => { $crate::dap::codec::$form::write($value, $out)? };
}

/// A message, or a part of one, with an encoding that takes up a whole byte string.
pub trait Message<'a>: Wire<'a> {
    /// Its name in the draft.
    const NAME: &'static str;

    /// Reads one value from all of these bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] if they are not exactly one value.
    fn decode(bytes: &'a [u8]) -> Result<Self> {
        let mut input = Input::new(Self::NAME, bytes);
        let message = Self::read(&mut input)?;
        input.finish()?;
        Ok(message)
    }

    /// Returns its bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Value`] if a field is longer than the draft allows, or empty where it must not be.
    fn encode(&self) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        self.write(&mut out)?;
        Ok(out)
    }
}
