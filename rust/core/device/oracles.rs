//! The randomizers that a plan can name.

use super::error::{Error, Result, refused};
use super::labels::Labels;
use super::members::Members;
use super::question::{Description, Reports};
use crate::frequency::{
    CountMeanSketch, DirectEncoding, FrequencyOracle, HadamardCountMeanSketch, HadamardResponse,
    LocalHashing, PooledLocalHashing, ProjectiveGeometryResponse, Selection, SubsetSelection,
    SummationHistogram, UnaryEncoding,
};
use crate::parameters::{DomainSize, Epsilon};
use crate::random::AesStreams;
use crate::wire::{Integer, Layout};

/// What the functions are drawn from that all reports share: the same in every collection.
const FUNCTIONS: u64 = 0;

/// Makes the reports of the people who take part.
type Draw = dyn Fn(&[u32], &Selection<'_>, &AesStreams) -> crate::Result<Reports> + Send + Sync;

/// A randomizer of codes that a plan describes.
pub(crate) struct Randomizer {
    epsilon: f64,
    made: Made,
}

/// What a randomizer is made of beside its epsilon.
struct Made {
    realized_epsilon: f64,
    layout: Layout,
    draw: Box<Draw>,
}

impl Randomizer {
    /// Reads the description of a randomizer of so many codes.
    pub(crate) fn read(asked: Description<'_, '_>, size: u64) -> Result<Self> {
        let mut rest = asked.rest;
        let made = make(&asked.name, &mut rest, asked.epsilon, size)?;
        rest.finish()?;
        Ok(Self { epsilon: asked.epsilon, made })
    }

    /// Reads the description of a randomizer of plain codes, of this epsilon and number of codes.
    pub(crate) fn of_codes(described: Members<'_, '_>, epsilon: f64, size: u64) -> Result<Self> {
        let asked = Description::read(described)?;
        if !Labels::are_codes(asked.domain, size)? || asked.epsilon.to_bits() != epsilon.to_bits() {
            return Err(refused(
                "an oracle is of another epsilon or other codes than what it is for",
            ));
        }
        Self::read(asked, size)
    }

    /// What was asked for, in nats.
    pub(crate) const fn epsilon(&self) -> f64 {
        self.epsilon
    }

    /// What a report says at most, in nats, rounded up.
    pub(crate) const fn realized_epsilon(&self) -> f64 {
        self.made.realized_epsilon
    }

    /// What reports look like.
    pub(crate) const fn layout(&self) -> Layout {
        self.made.layout
    }

    /// The reports of the people who take part.
    pub(crate) fn reports(
        &self,
        codes: &[u32],
        selection: &Selection<'_>,
        streams: &AesStreams,
    ) -> Result<Reports> {
        Ok((self.made.draw)(codes, selection, streams)?)
    }
}

/// The randomizer of that name; takes the members that it needs.
fn make(name: &str, members: &mut Members<'_, '_>, epsilon: f64, size: u64) -> Result<Made> {
    let epsilon = Epsilon::new(epsilon)?;
    let domain = DomainSize::new(size)?;
    match name {
        "direct_encoding" => Ok(direct_encoding(DirectEncoding::new(epsilon, domain)?)),
        "symmetric_unary_encoding" => Ok(rows(UnaryEncoding::symmetric(epsilon, domain)?)),
        "optimized_unary_encoding" => Ok(rows(UnaryEncoding::optimized(epsilon, domain)?)),
        "threshold_histogram_encoding" => {
            Ok(rows(UnaryEncoding::threshold_histogram(epsilon, domain)?))
        }
        "summation_histogram_encoding" => Ok(rows(SummationHistogram::new(epsilon, domain)?)),
        "binary_local_hashing" => local_hashing(members, epsilon, domain, 2),
        "optimized_local_hashing" => {
            let buckets = members.take("buckets")?;
            local_hashing(members, epsilon, domain, buckets)
        }
        "subset_selection" => {
            let size = members.take("subset_size")?;
            Ok(rows(SubsetSelection::new(epsilon, domain, Some(size))?))
        }
        "hadamard_response" => {
            let oracle = HadamardResponse::<u32>::new(epsilon, domain)?;
            let integer = Integer::narrowest(oracle.report_count());
            Ok(made(oracle, Layout::one(integer)))
        }
        "projective_geometry_response" => {
            let field = Some(members.take("field_size")?);
            let oracle = ProjectiveGeometryResponse::<u32>::new(epsilon, domain, field)?;
            let integer = Integer::narrowest(oracle.points());
            Ok(made(oracle, Layout::one(integer)))
        }
        "count_mean_sketch" => {
            let (hashes, width) = sketch(members)?;
            Ok(rows(CountMeanSketch::new(epsilon, domain, hashes, width, FUNCTIONS)?))
        }
        "hadamard_count_mean_sketch" => {
            let (hashes, width) = sketch(members)?;
            Ok(ones(HadamardCountMeanSketch::new(epsilon, domain, hashes, width, FUNCTIONS)?))
        }
        other => Err(Error::UnknownKind(other.to_owned())),
    }
}

fn local_hashing(
    members: &mut Members<'_, '_>,
    epsilon: Epsilon,
    domain: DomainSize,
    buckets: u64,
) -> Result<Made> {
    let Some(functions) = members.find("hashes")? else {
        return Ok(ones(LocalHashing::new(epsilon, domain, buckets)?));
    };
    Ok(ones(PooledLocalHashing::new(epsilon, domain, buckets, functions, FUNCTIONS)?))
}

fn sketch(members: &mut Members<'_, '_>) -> Result<(u64, u64)> {
    Ok((members.take("hashes")?, members.take("width")?))
}

/// What a randomizer says at most.
trait Realized {
    fn realized(&self) -> f64;
}

macro_rules! realized {
    ($($oracle:ty),*) => {$(
        impl Realized for $oracle {
            fn realized(&self) -> f64 {
                self.realized_epsilon()
            }
        }
    )*};
}

realized!(
    CountMeanSketch,
    HadamardCountMeanSketch,
    HadamardResponse<u32>,
    LocalHashing,
    PooledLocalHashing,
    ProjectiveGeometryResponse<u32>,
    SubsetSelection,
    SummationHistogram,
    UnaryEncoding
);

/// The randomizer of an oracle whose reports are rows.
fn rows<O: FrequencyOracle<Item: Word> + Realized + Send + 'static>(oracle: O) -> Made {
    let layout = Layout::row(O::Item::INTEGER, oracle.width());
    made(oracle, layout)
}

/// The randomizer of an oracle whose reports are integers of a type of its own.
fn ones<O: FrequencyOracle<Item: Word> + Realized + Send + 'static>(oracle: O) -> Made {
    made(oracle, Layout::one(O::Item::INTEGER))
}

fn made<O>(oracle: O, layout: Layout) -> Made
where
    O: FrequencyOracle<Item: Word> + Realized + Send + 'static,
{
    Made {
        realized_epsilon: oracle.realized(),
        layout,
        draw: Box::new(move |codes, selection, streams| {
            let reports = oracle.randomize(codes, selection, streams)?;
            Ok(bytes(&reports.codes, layout))
        }),
    }
}

/// Its kernel makes reports of the type that is asked for, and is no [`FrequencyOracle`].
fn direct_encoding(oracle: DirectEncoding) -> Made {
    let layout = Layout::one(Integer::narrowest(oracle.domain_size().get()));
    Made {
        realized_epsilon: oracle.realized_epsilon(),
        layout,
        draw: Box::new(move |codes, selection, streams| {
            let reports = oracle.randomize::<_, u32, _>(codes, selection, streams)?;
            Ok(bytes(&reports.codes, layout))
        }),
    }
}

/// An integer of a report.
pub(crate) trait Word: Copy {
    /// Its width, and whether it has a sign.
    const INTEGER: Integer;

    /// Its bytes, little-endian.
    fn le_bytes(self) -> [u8; 8];
}

macro_rules! words {
    ($($word:ty => $unsigned:ty),*) => {$(
        impl Word for $word {
            const INTEGER: Integer = match Integer::new(size_of::<$word>(), <$word>::MIN != 0) {
                Some(integer) => integer,
                None => panic!("integers have 1, 2, 4 or 8 bytes"),
            };

            #[allow(
                clippy::cast_lossless,
                clippy::cast_sign_loss,
                clippy::unnecessary_cast,
                reason = "the same bytes, for every width"
            )]
            fn le_bytes(self) -> [u8; 8] {
                (self as $unsigned as u64).to_le_bytes()
            }
        }
    )*};
}

words!(u16 => u16, u32 => u32, u64 => u64, i32 => u32);

/// Integers as those of a layout, which are as wide as their values need.
pub(crate) fn bytes<W: Word>(words: &[W], layout: Layout) -> Reports {
    let width = layout.integer().bytes();
    let mut bytes = Vec::with_capacity(words.len() * width);
    for word in words {
        bytes.extend(word.le_bytes().iter().take(width));
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_little_endian() {
        let layout = |bytes| Layout::row(Integer::new(bytes, false).unwrap_or(u64::INTEGER), 2);
        assert_eq!(bytes(&[1_u32, 0xabcd], layout(2)), [1, 0, 0xcd, 0xab]);
        assert_eq!(bytes(&[-2_i32], layout(4)), [0xfe, 0xff, 0xff, 0xff]);
        assert_eq!(bytes(&[u64::MAX], layout(8)), [0xff; 8]);
        assert!(i32::INTEGER.is_signed() && !u32::INTEGER.is_signed());
    }
}
