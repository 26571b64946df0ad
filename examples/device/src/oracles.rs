//! The randomizers that a plan can name.

use turnout_core::frequency::{
    CountMeanSketch, DirectEncoding, FrequencyOracle, HadamardCountMeanSketch, HadamardResponse,
    LocalHashing, PooledLocalHashing, ProjectiveGeometryResponse, Randomizer as _, Selection,
    SubsetSelection, SummationHistogram, UnaryEncoding,
};
use turnout_core::parameters::{DomainSize, Epsilon};
use turnout_core::random::AesStreams;

use crate::Refusal;
use crate::labels::Labels;
use crate::members::Members;
use crate::question::Description;
use crate::reports::{Layout, Report, Word, narrowest};

/// Those who randomize: the nodes, who takes part, and where the noise comes from.
#[derive(Clone, Copy)]
pub(crate) struct Nodes<'a> {
    pub(crate) codes: &'a [u32],
    pub(crate) selection: &'a Selection<'a>,
    pub(crate) streams: &'a AesStreams,
}

/// Makes the reports of the nodes that take part.
type Draw = dyn Fn(Nodes<'_>) -> turnout_core::Result<Vec<Report>>;

/// A randomizer of codes that a plan describes.
pub(crate) struct Randomizer {
    /// What was asked for, in nats.
    pub(crate) epsilon: f64,
    /// What a report says at most, in nats, rounded up.
    pub(crate) realized_epsilon: f64,
    pub(crate) layout: Layout,
    draw: Box<Draw>,
}

impl Randomizer {
    /// Reads the description of a randomizer of so many codes.
    pub(crate) fn read(asked: Description<'_>, size: u64) -> Result<Self, Refusal> {
        let mut rest = asked.rest;
        let Made { realized_epsilon, layout, draw } =
            make(&asked.name, &mut rest, asked.epsilon, size)?;
        rest.finish()?;
        Ok(Self { epsilon: asked.epsilon, realized_epsilon, layout, draw })
    }

    /// Reads the description of a randomizer of plain codes, of this epsilon and number of codes.
    pub(crate) fn of_codes(
        described: Members<'_>,
        epsilon: f64,
        size: u64,
    ) -> Result<Self, Refusal> {
        let asked = Description::read(described)?;
        let codes = matches!(Labels::read(asked.domain)?, Labels::Integers(found) if found == size);
        if !codes || asked.epsilon.to_bits() != epsilon.to_bits() {
            return Err(
                "an oracle is of another epsilon or other codes than what it is for".to_owned()
            );
        }
        Self::read(asked, size)
    }

    /// The reports of the nodes that take part.
    pub(crate) fn reports(&self, nodes: Nodes<'_>) -> Result<Vec<Report>, Refusal> {
        (self.draw)(nodes).map_err(|error| error.to_string())
    }
}

/// What a randomizer is made of beside its epsilon.
struct Made {
    realized_epsilon: f64,
    layout: Layout,
    draw: Box<Draw>,
}

/// The randomizer of an oracle whose reports are made of integers of so many bytes.
macro_rules! randomizer {
    ($oracle:expr, |$made:ident| $width:expr, $bytes:expr) => {{
        let $made = $oracle.map_err(|error| error.to_string())?;
        let layout = Layout { bytes: $bytes, width: $width };
        let realized_epsilon = $made.realized_epsilon();
        Ok(Made {
            realized_epsilon,
            layout,
            draw: Box::new(move |nodes| draw(&$made, layout, nodes)),
        })
    }};
}

/// The randomizer of an oracle whose reports are rows.
macro_rules! rows {
    ($oracle:expr) => {
        randomizer!($oracle, |made| Some(made.width()), bytes_of(&made))
    };
}

/// The randomizer of an oracle whose reports are integers of a type of its own.
macro_rules! numbers {
    ($oracle:expr) => {
        randomizer!($oracle, |made| None, bytes_of(&made))
    };
}

/// The randomizer of that name; takes the members that it needs.
fn make(name: &str, members: &mut Members<'_>, epsilon: f64, size: u64) -> Result<Made, Refusal> {
    let refused = |error: turnout_core::Error| error.to_string();
    let epsilon = Epsilon::new(epsilon).map_err(refused)?;
    let domain = DomainSize::new(size).map_err(refused)?;
    match name {
        "direct_encoding" => direct_encoding(epsilon, domain),
        "symmetric_unary_encoding" => rows!(UnaryEncoding::symmetric(epsilon, domain)),
        "optimized_unary_encoding" => rows!(UnaryEncoding::optimized(epsilon, domain)),
        "threshold_histogram_encoding" => {
            rows!(UnaryEncoding::threshold_histogram(epsilon, domain))
        }
        "summation_histogram_encoding" => rows!(SummationHistogram::new(epsilon, domain)),
        "binary_local_hashing" => local_hashing(members, epsilon, domain, 2),
        "optimized_local_hashing" => {
            let buckets = members.take("buckets")?;
            local_hashing(members, epsilon, domain, buckets)
        }
        "subset_selection" => {
            let size = members.take("subset_size")?;
            rows!(SubsetSelection::new(epsilon, domain, Some(size)))
        }
        "hadamard_response" => {
            let oracle = HadamardResponse::<u32>::new(epsilon, domain);
            randomizer!(oracle, |made| None, narrowest(made.report_count()))
        }
        "projective_geometry_response" => {
            let field = Some(members.take("field_size")?);
            let oracle = ProjectiveGeometryResponse::<u32>::new(epsilon, domain, field);
            randomizer!(oracle, |made| None, narrowest(made.points()))
        }
        "count_mean_sketch" => {
            let (hashes, width, seed) = sketch(members)?;
            rows!(CountMeanSketch::new(epsilon, domain, hashes, width, seed))
        }
        "hadamard_count_mean_sketch" => {
            let (hashes, width, seed) = sketch(members)?;
            numbers!(HadamardCountMeanSketch::new(epsilon, domain, hashes, width, seed))
        }
        other => Err(format!("this device does not have the oracle {other}")),
    }
}

/// Its kernel makes reports of the type that is asked for, and is no [`FrequencyOracle`].
fn direct_encoding(epsilon: Epsilon, domain: DomainSize) -> Result<Made, Refusal> {
    let oracle = DirectEncoding::new(epsilon, domain).map_err(|error| error.to_string())?;
    let layout = Layout { bytes: narrowest(domain.get()), width: None };
    let realized_epsilon = oracle.realized_epsilon();
    let draw = move |nodes: Nodes<'_>| {
        let reports = oracle.randomize::<_, u32, _>(nodes.codes, nodes.selection, nodes.streams)?;
        let report = |code: u32| Report { words: vec![code.into()], layout };
        Ok(reports.codes.into_iter().map(report).collect())
    };
    Ok(Made { realized_epsilon, layout, draw: Box::new(draw) })
}

fn local_hashing(
    members: &mut Members<'_>,
    epsilon: Epsilon,
    domain: DomainSize,
    buckets: u64,
) -> Result<Made, Refusal> {
    let Some(functions) = members.find("seed_pool")? else {
        return numbers!(LocalHashing::new(epsilon, domain, buckets));
    };
    let seed = members.take("pool_seed")?;
    numbers!(PooledLocalHashing::new(epsilon, domain, buckets, functions, seed))
}

fn sketch(members: &mut Members<'_>) -> Result<(u64, u64, u64), Refusal> {
    Ok((members.take("hashes")?, members.take("width")?, members.take("hash_seed")?))
}

/// How many bytes the integers of an oracle's reports have.
const fn bytes_of<O: FrequencyOracle<Item: Word>>(_: &O) -> usize {
    O::Item::BYTES
}

fn draw<O>(oracle: &O, layout: Layout, nodes: Nodes<'_>) -> turnout_core::Result<Vec<Report>>
where
    O: FrequencyOracle<Item: Word>,
{
    let reports = oracle.randomize(nodes.codes, nodes.selection, nodes.streams)?;
    let report =
        |row: &[O::Item]| Report { words: row.iter().map(|item| item.word()).collect(), layout };
    Ok(reports.codes.chunks_exact(layout.words()).map(report).collect())
}
