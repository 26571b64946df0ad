//! The randomizers that a plan can name.

use std::collections::BTreeMap;
use std::fmt;

use turnout::frequency::{
    CountMeanSketch, DirectEncoding, FrequencyOracle, HadamardCountMeanSketch, HadamardResponse,
    LocalHashing, PooledLocalHashing, ProjectiveGeometryResponse, Selection, SubsetSelection,
    SummationHistogram, UnaryEncoding,
};
use turnout::parameters::{DomainSize, Epsilon};
use turnout::random::AesStreams;

use crate::Refusal;

/// What a plan says of its randomizer.
#[derive(Debug)]
pub(crate) struct Description {
    pub(crate) name: String,
    pub(crate) epsilon: f64,
    /// How many codes it randomizes.
    pub(crate) size: u64,
    /// What the randomizer takes beside epsilon and the domain.
    pub(crate) parameters: Parameters,
}

/// Whole numbers by name.
#[derive(Debug, Clone)]
pub(crate) struct Parameters(pub(crate) BTreeMap<String, u64>);

impl Parameters {
    fn take(&mut self, name: &str) -> Result<u64, Refusal> {
        self.0.remove(name).ok_or_else(|| format!("the oracle has no {name}"))
    }

    /// Refuses what nobody took.
    fn finish(self) -> Result<(), Refusal> {
        match self.0.keys().next() {
            None => Ok(()),
            Some(name) => Err(format!("the oracle has an unknown parameter {name}")),
        }
    }
}

/// One report.
#[derive(Debug, PartialEq)]
pub(crate) enum Report {
    /// An integer.
    Number(u64),
    /// The little-endian bytes of a row of integers.
    Row(Vec<u8>),
}

/// As it stands in a message.
impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(formatter, "{number}"),
            Self::Row(bytes) => {
                formatter.write_str("\"")?;
                bytes.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))?;
                formatter.write_str("\"")
            }
        }
    }
}

/// Those who randomize: the nodes, who takes part, and where the noise comes from.
#[derive(Clone, Copy)]
pub(crate) struct Nodes<'a> {
    pub(crate) codes: &'a [u32],
    pub(crate) selection: &'a Selection<'a>,
    pub(crate) streams: &'a AesStreams,
}

/// Makes the reports of the nodes that take part.
type Draw = dyn Fn(Nodes<'_>) -> turnout::Result<Vec<Report>>;

/// A randomizer that a plan describes.
pub(crate) struct Randomizer {
    /// What a report says at most, in nats, rounded up.
    pub(crate) realized_epsilon: f64,
    draw: Box<Draw>,
}

impl Randomizer {
    /// The reports of the nodes that take part.
    pub(crate) fn reports(&self, nodes: Nodes<'_>) -> Result<Vec<Report>, Refusal> {
        (self.draw)(nodes).map_err(|error| error.to_string())
    }
}

/// The randomizer of an oracle, or of the error that it could not be made for.
macro_rules! randomizer {
    ($oracle:expr, $draw:ident) => {{
        let oracle = $oracle.map_err(|error| error.to_string())?;
        let realized_epsilon = oracle.realized_epsilon();
        Ok(Randomizer { realized_epsilon, draw: Box::new(move |nodes| $draw(&oracle, nodes)) })
    }};
}

impl Description {
    /// Makes the randomizer.
    pub(crate) fn randomizer(&self) -> Result<Randomizer, Refusal> {
        let mut parameters = self.parameters.clone();
        let refused = |error: turnout::Error| error.to_string();
        let epsilon = Epsilon::new(self.epsilon).map_err(refused)?;
        let domain = DomainSize::new(self.size).map_err(refused)?;
        let made = make(&self.name, &mut parameters, epsilon, domain)?;
        parameters.finish()?;
        Ok(made)
    }
}

/// The randomizer of that name; takes the parameters that it needs.
fn make(
    name: &str,
    parameters: &mut Parameters,
    epsilon: Epsilon,
    domain: DomainSize,
) -> Result<Randomizer, Refusal> {
    match name {
        "direct_encoding" => randomizer!(DirectEncoding::new(epsilon, domain), own_codes),
        "symmetric_unary_encoding" => randomizer!(UnaryEncoding::symmetric(epsilon, domain), rows),
        "optimized_unary_encoding" => randomizer!(UnaryEncoding::optimized(epsilon, domain), rows),
        "threshold_histogram_encoding" => {
            randomizer!(UnaryEncoding::threshold_histogram(epsilon, domain), rows)
        }
        "summation_histogram_encoding" => {
            randomizer!(SummationHistogram::new(epsilon, domain), rows)
        }
        "binary_local_hashing" => local_hashing(parameters, epsilon, domain, 2),
        "optimized_local_hashing" => {
            let buckets = parameters.take("buckets")?;
            local_hashing(parameters, epsilon, domain, buckets)
        }
        "subset_selection" => {
            let size = parameters.take("subset_size")?;
            randomizer!(SubsetSelection::new(epsilon, domain, Some(size)), rows)
        }
        "hadamard_response" => {
            randomizer!(HadamardResponse::<u32>::new(epsilon, domain), numbers)
        }
        "projective_geometry_response" => {
            let field = Some(parameters.take("field_size")?);
            randomizer!(ProjectiveGeometryResponse::<u32>::new(epsilon, domain, field), numbers)
        }
        "count_mean_sketch" => {
            let (hashes, width, seed) = sketch(parameters)?;
            randomizer!(CountMeanSketch::new(epsilon, domain, hashes, width, seed), rows)
        }
        "hadamard_count_mean_sketch" => {
            let (hashes, width, seed) = sketch(parameters)?;
            let oracle = HadamardCountMeanSketch::new(epsilon, domain, hashes, width, seed);
            randomizer!(oracle, numbers)
        }
        other => Err(format!("this device does not have the oracle {other}")),
    }
}

fn local_hashing(
    parameters: &mut Parameters,
    epsilon: Epsilon,
    domain: DomainSize,
    buckets: u64,
) -> Result<Randomizer, Refusal> {
    let Ok(functions) = parameters.take("seed_pool") else {
        return randomizer!(LocalHashing::new(epsilon, domain, buckets), numbers);
    };
    let seed = parameters.take("pool_seed")?;
    randomizer!(PooledLocalHashing::new(epsilon, domain, buckets, functions, seed), numbers)
}

fn sketch(parameters: &mut Parameters) -> Result<(u64, u64, u64), Refusal> {
    Ok((parameters.take("hashes")?, parameters.take("width")?, parameters.take("hash_seed")?))
}

fn own_codes(oracle: &DirectEncoding, nodes: Nodes<'_>) -> turnout::Result<Vec<Report>> {
    let reports = oracle.randomize::<_, u32, _>(nodes.codes, nodes.selection, nodes.streams)?;
    Ok(reports.codes.into_iter().map(|code| Report::Number(code.into())).collect())
}

fn numbers<O>(oracle: &O, nodes: Nodes<'_>) -> turnout::Result<Vec<Report>>
where
    O: FrequencyOracle<Item: Into<u64>>,
{
    let reports = oracle.randomize(nodes.codes, nodes.selection, nodes.streams)?;
    Ok(reports.codes.into_iter().map(|number| Report::Number(number.into())).collect())
}

fn rows<O>(oracle: &O, nodes: Nodes<'_>) -> turnout::Result<Vec<Report>>
where
    O: FrequencyOracle<Item: Bytes>,
{
    let reports = oracle.randomize(nodes.codes, nodes.selection, nodes.streams)?;
    let row = |items: &[O::Item]| {
        let mut bytes = Vec::new();
        for item in items {
            item.append(&mut bytes);
        }
        Report::Row(bytes)
    };
    Ok(reports.codes.chunks_exact(oracle.width()).map(row).collect())
}

/// An integer of a row.
trait Bytes {
    /// Appends its little-endian bytes.
    fn append(&self, bytes: &mut Vec<u8>);
}

impl Bytes for u64 {
    fn append(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.to_le_bytes());
    }
}

impl Bytes for i32 {
    fn append(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.to_le_bytes());
    }
}
