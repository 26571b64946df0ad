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

/// The reports of the nodes that take part.
pub(crate) fn reports(
    oracle: &Description,
    domain: u64,
    nodes: Nodes<'_>,
) -> Result<Vec<Report>, Refusal> {
    let mut parameters = oracle.parameters.clone();
    let made = make(&oracle.name, &mut parameters, oracle.epsilon, domain, nodes)?;
    parameters.finish()?;
    made.map_err(|error| error.to_string())
}

/// The reports under an oracle's name; takes the parameters that it needs.
fn make(
    name: &str,
    parameters: &mut Parameters,
    epsilon: f64,
    domain: u64,
    nodes: Nodes<'_>,
) -> Result<turnout::Result<Vec<Report>>, Refusal> {
    let refused = |error: turnout::Error| error.to_string();
    let epsilon = Epsilon::new(epsilon).map_err(refused)?;
    let domain = DomainSize::new(domain).map_err(refused)?;
    Ok(match name {
        "direct_encoding" => DirectEncoding::new(epsilon, domain).and_then(|oracle| {
            let Nodes { codes, selection, streams } = nodes;
            let reports = oracle.randomize::<_, u32, _>(codes, selection, streams)?;
            Ok(reports.codes.into_iter().map(|code| Report::Number(code.into())).collect())
        }),
        "symmetric_unary_encoding" => {
            UnaryEncoding::symmetric(epsilon, domain).and_then(|oracle| rows(&oracle, nodes))
        }
        "optimized_unary_encoding" => {
            UnaryEncoding::optimized(epsilon, domain).and_then(|oracle| rows(&oracle, nodes))
        }
        "threshold_histogram_encoding" => UnaryEncoding::threshold_histogram(epsilon, domain)
            .and_then(|oracle| rows(&oracle, nodes)),
        "summation_histogram_encoding" => {
            SummationHistogram::new(epsilon, domain).and_then(|oracle| rows(&oracle, nodes))
        }
        "binary_local_hashing" => local_hashing(parameters, epsilon, domain, 2, nodes)?,
        "optimized_local_hashing" => {
            let buckets = parameters.take("buckets")?;
            local_hashing(parameters, epsilon, domain, buckets, nodes)?
        }
        "subset_selection" => {
            let size = parameters.take("subset_size")?;
            SubsetSelection::new(epsilon, domain, Some(size))
                .and_then(|oracle| rows(&oracle, nodes))
        }
        "hadamard_response" => {
            HadamardResponse::<u32>::new(epsilon, domain).and_then(|oracle| numbers(&oracle, nodes))
        }
        "projective_geometry_response" => {
            let field = parameters.take("field_size")?;
            ProjectiveGeometryResponse::<u32>::new(epsilon, domain, Some(field))
                .and_then(|oracle| numbers(&oracle, nodes))
        }
        "count_mean_sketch" => {
            let (hashes, width, seed) = sketch(parameters)?;
            CountMeanSketch::new(epsilon, domain, hashes, width, seed)
                .and_then(|oracle| rows(&oracle, nodes))
        }
        "hadamard_count_mean_sketch" => {
            let (hashes, width, seed) = sketch(parameters)?;
            HadamardCountMeanSketch::new(epsilon, domain, hashes, width, seed)
                .and_then(|oracle| numbers(&oracle, nodes))
        }
        other => return Err(format!("this device does not have the oracle {other}")),
    })
}

fn local_hashing(
    parameters: &mut Parameters,
    epsilon: Epsilon,
    domain: DomainSize,
    buckets: u64,
    nodes: Nodes<'_>,
) -> Result<turnout::Result<Vec<Report>>, Refusal> {
    let Ok(functions) = parameters.take("seed_pool") else {
        return Ok(
            LocalHashing::new(epsilon, domain, buckets).and_then(|oracle| numbers(&oracle, nodes))
        );
    };
    let seed = parameters.take("pool_seed")?;
    Ok(PooledLocalHashing::new(epsilon, domain, buckets, functions, seed)
        .and_then(|oracle| numbers(&oracle, nodes)))
}

fn sketch(parameters: &mut Parameters) -> Result<(u64, u64, u64), Refusal> {
    Ok((parameters.take("hashes")?, parameters.take("width")?, parameters.take("hash_seed")?))
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
