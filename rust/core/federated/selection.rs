//! Independent selection from many, in time proportional to the number selected.

use core::ops::Range;

use crate::parallel;
use crate::parameters::Probability;
use crate::random::{Purpose, SKIPS_MAXIMUM_LENGTH, Skips, Streams, Words};
use crate::{Error, Result};

/// The most that can be selected from.
const LARGEST: u64 = 1 << 40;

/// What one call of [`Skips::select`] takes.
const STRETCH: u64 = SKIPS_MAXIMUM_LENGTH as u64;

/// Chunks that are looked at together: what they select is in memory twice.
const TOGETHER: usize = 64;

/// Selects each with the same probability, independently and exactly.
///
/// The preparation depends on the rate alone. It takes about as long as selecting ten thousand.
///
/// ```
/// use turnout_core::federated::BernoulliSelection;
/// use turnout_core::random::AesStreams;
///
/// let streams = AesStreams::from_operating_system()?;
/// let selected = BernoulliSelection::new(1e-6)?.select(1 << 30, &streams)?;
/// assert!(selected.is_sorted() && (800..1400).contains(&selected.len()));
/// # Ok::<(), turnout_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct BernoulliSelection(Rule);

#[derive(Debug, Clone)]
enum Rule {
    Nobody,
    Everybody,
    Some(Box<Skips>),
}

impl BernoulliSelection {
    /// Selects with probability `rate`, which may be 0 or 1.
    ///
    /// # Errors
    ///
    /// [`Error::Accounting`] if the rate is not in [0, 1].
    pub fn new(rate: f64) -> Result<Self> {
        if rate == 0.0 {
            return Ok(Self(Rule::Nobody));
        }
        match Probability::new(rate) {
            Ok(Probability::ONE) => Ok(Self(Rule::Everybody)),
            Ok(rate) => Ok(Self(Rule::Some(Box::new(Skips::new(rate))))),
            Err(_) => {
                let expected = "a probability in [0, 1]";
                Err(Error::Accounting { argument: "rate", value: rate, expected })
            }
        }
    }

    /// Returns the indices, in ascending order, of the selected ones of `size`. It runs on the
    /// current rayon pool if there are many. The result depends on `streams` alone.
    ///
    /// Time and memory are proportional to the number selected, plus one word for every 2^16 that
    /// are passed over. With the same streams, the selection from a smaller size is a prefix: the
    /// indices below `k` are the selection from `k`. So index `i` is selected if it is the last of
    /// the selection from `i + 1`.
    ///
    /// # Errors
    ///
    /// [`Error::Integer`] if the size is above 2^40; [`Error::Accounting`] if the indices do not
    /// fit in memory.
    pub fn select<S: Streams>(&self, size: u64, streams: &S) -> Result<Vec<i64>> {
        if size > LARGEST {
            return Err(Error::Integer { argument: "size", value: size, expected: "at most 2^40" });
        }
        let mut indices = Vec::new();
        match &self.0 {
            Rule::Nobody => {}
            Rule::Everybody => {
                reserve(&mut indices, size, size)?;
                indices.extend(0..size.cast_signed());
            }
            Rule::Some(skips) => select_some(skips, size, streams, &mut indices)?,
        }
        Ok(indices)
    }
}

fn select_some<S: Streams>(
    skips: &Skips,
    size: u64,
    streams: &S,
    indices: &mut Vec<i64>,
) -> Result<()> {
    let chunk = chunk_length(skips.rate());
    let select = |index: u64| {
        let start = index * chunk;
        let mut stream = streams.stream(Purpose::Participation, index);
        select_chunk(skips, start..size.min(start + chunk), &mut stream)
    };
    if size <= chunk {
        *indices = select(0);
        return Ok(());
    }
    let chunks = size.div_ceil(chunk);
    for first in (0..chunks).step_by(TOGETHER) {
        let many = usize::try_from(chunks - first).map_or(TOGETHER, |left| left.min(TOGETHER));
        let found = parallel::map(many, |index| select(first + index as u64));
        let added = found.iter().map(Vec::len).sum::<usize>() as u64;
        reserve(indices, added, size)?;
        for found in found {
            indices.extend(found);
        }
    }
    Ok(())
}

/// How many have one stream. It depends on the rate alone. It is a whole number of the stretches of
/// one call of [`Skips::select`], chosen so that about 2^12 are selected if possible.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 1 to 2^16")]
fn chunk_length(rate: Probability) -> u64 {
    let stretches = (0.0625 / rate.get()).clamp(1.0, 65_536.0) as u64;
    stretches * STRETCH
}

/// The indices of a chunk that are selected. One stretch after the other reads the stream: where
/// the last one is cut changes nothing that was drawn before.
#[expect(clippy::cast_possible_truncation, reason = "a stretch has at most 2^16")]
fn select_chunk<R: Words>(skips: &Skips, chunk: Range<u64>, rng: &mut R) -> Vec<i64> {
    let (mut indices, mut selected) = (Vec::new(), Vec::new());
    for start in chunk.clone().step_by(STRETCH as usize) {
        let length = STRETCH.min(chunk.end - start) as usize;
        skips.select(length, rng, &mut selected);
        let start = start.cast_signed();
        indices.extend(selected.iter().map(|&position| start + i64::from(position)));
    }
    indices
}

/// Makes room for more indices.
fn reserve(indices: &mut Vec<i64>, added: u64, size: u64) -> Result<()> {
    usize::try_from(added).ok().and_then(|added| indices.try_reserve(added).ok()).ok_or(
        Error::Accounting {
            argument: "size",
            value: size as f64,
            expected: "so small that the indices fit in memory",
        },
    )
}

#[cfg(test)]
mod tests {
    use rayon::ThreadPoolBuilder;

    use super::*;
    use crate::noise::tests::check_law;
    use crate::random::AesStreams;

    fn select_bernoulli(size: u64, rate: f64, streams: &AesStreams) -> Result<Vec<i64>> {
        BernoulliSelection::new(rate)?.select(size, streams)
    }

    const RATES: [f64; 7] = [0.97, 0.5, 0.1, 0.02, 0.004, 1e-4, 1e-7];

    #[test]
    fn the_selection_from_fewer_is_a_prefix() -> Result<()> {
        for (seed, rate) in (0..).zip(RATES) {
            let streams = AesStreams::from_seed(seed);
            let chunk = chunk_length(Probability::new(rate)?);
            let size = (3 * chunk + 70_001).min(1 << 33);
            let all = select_bernoulli(size, rate, &streams)?;
            assert!(all.is_sorted_by(|one, next| one < next));
            assert!(all.iter().all(|&index| (0..size.cast_signed()).contains(&index)));
            let mut cuts = vec![0, 1, 2, 255, 256, 257, 65_535, 65_536, 65_537, 131_073];
            cuts.extend([chunk - 1, chunk, chunk + 1, 2 * chunk + 5, size - 1]);
            let some = all.iter().step_by(all.len() / 7 + 1);
            cuts.extend(some.flat_map(|index| [index.unsigned_abs(), index.unsigned_abs() + 1]));
            for cut in cuts.into_iter().filter(|&cut| cut <= size) {
                let fewer = select_bernoulli(cut, rate, &streams)?;
                let length = all.partition_point(|&index| index < cut.cast_signed());
                assert_eq!(fewer, all[..length], "{rate} {cut}");
            }
        }
        Ok(())
    }

    #[test]
    fn every_index_is_selected_at_the_rate() -> Result<()> {
        // Around the ends of stretches and chunks: each index, two neighbours in different chunks,
        // and the first of two chunks.
        for (case, rate) in (0..).zip([0.9, 0.3, 0.05]) {
            let chunk = chunk_length(Probability::new(rate)?);
            let size = chunk + 40;
            let watched: Vec<i64> =
                [0, 1, STRETCH - 1, chunk - 1, chunk, chunk + 39].map(u64::cast_signed).to_vec();
            let mut single = vec![[0_u64; 2]; watched.len()];
            let mut pairs = vec![[0_u64; 4]; 2];
            for run in 0..4_000 {
                let streams = AesStreams::from_seed(run + (case << 32));
                let selected = select_bernoulli(size, rate, &streams)?;
                let found: Vec<usize> = watched
                    .iter()
                    .map(|index| usize::from(selected.binary_search(index).is_ok()))
                    .collect();
                for (counts, &found) in single.iter_mut().zip(&found) {
                    counts[found] += 1;
                }
                pairs[0][2 * found[3] + found[4]] += 1;
                pairs[1][2 * found[0] + found[4]] += 1;
            }
            for counts in single {
                check_law(&counts, &[1.0 - rate, rate]);
            }
            let (no, yes) = (1.0 - rate, rate);
            for counts in pairs {
                check_law(&counts, &[no * no, no * yes, yes * no, yes * yes]);
            }
        }
        Ok(())
    }

    #[test]
    fn as_many_are_selected_as_should_be() -> Result<()> {
        for (seed, rate) in (0..).zip(RATES) {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let size = (4e5 / rate).min(1e12) as u64;
            let found = select_bernoulli(size, rate, &AesStreams::from_seed(seed))?.len() as f64;
            let mean = size as f64 * rate;
            let score = (found - mean) / (mean * (1.0 - rate)).sqrt();
            assert!(score.abs() < 5.4, "{rate}: {score}");
        }
        Ok(())
    }

    #[test]
    fn the_number_of_threads_does_not_matter() -> Result<()> {
        for rate in RATES {
            let select = || select_bernoulli(1 << 24, rate, &AesStreams::from_seed(4));
            let one = ThreadPoolBuilder::new().num_threads(1).build();
            let three = ThreadPoolBuilder::new().num_threads(3).build();
            let (Ok(one), Ok(three)) = (one, three) else { continue };
            assert_eq!(one.install(select)?, three.install(select)?);
        }
        Ok(())
    }

    #[test]
    fn certain_rates_and_refused_arguments() -> Result<()> {
        let streams = AesStreams::from_seed(1);
        assert_eq!(select_bernoulli(5, 1.0, &streams)?, [0, 1, 2, 3, 4]);
        assert!(select_bernoulli(1 << 40, 0.0, &streams)?.is_empty());
        assert!(select_bernoulli(1 << 40, 1e-300, &streams)?.is_empty());
        assert!(select_bernoulli(0, 0.3, &streams)?.is_empty());
        for rate in [-0.1, 1.000_1, f64::NAN, f64::INFINITY] {
            assert!(matches!(
                select_bernoulli(5, rate, &streams),
                Err(Error::Accounting { argument: "rate", .. })
            ));
        }
        assert!(matches!(
            select_bernoulli((1 << 40) + 1, 0.5, &streams),
            Err(Error::Integer { argument: "size", .. })
        ));
        Ok(())
    }
}
