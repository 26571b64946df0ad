//! Which nodes take part.

use super::CHUNK;
use crate::parallel::{self, chunk};
use crate::parameters::Probability;
use crate::random::{Bernoulli, Purpose, Skips, Streams};
use crate::{Error, Result};

/// The checked participation probabilities of single nodes.
///
/// Each is in `[2^-30, 1]`. A node that almost never reports would need a weight that drowns all
/// others, and a node that never reports cannot be represented.
#[derive(Debug, Clone, Copy)]
pub struct NodeProbabilities<'a>(&'a [f64]);

impl<'a> NodeProbabilities<'a> {
    /// The smallest probability that is accepted.
    pub const MINIMUM: f64 = 1.0 / (1 << 30) as f64;

    /// Checks the probabilities of all nodes.
    ///
    /// # Errors
    ///
    /// [`Error::NodeProbability`] with the first value that is out of range.
    pub fn new(probabilities: &'a [f64]) -> Result<Self> {
        let accepted = Self::MINIMUM..=1.0;
        match probabilities.iter().position(|value| !accepted.contains(value)) {
            None => Ok(Self(probabilities)),
            Some(index) => Err(Error::NodeProbability { index, value: probabilities[index] }),
        }
    }

    /// The probabilities.
    #[must_use]
    pub const fn get(self) -> &'a [f64] {
        self.0
    }

    /// Returns what the estimators need to know about the nodes that did not report.
    #[must_use]
    pub fn design(self) -> DesignSums {
        let sums = parallel::map(self.0.len().div_ceil(CHUNK), |index| {
            let nodes = &self.0[chunk(index, CHUNK, self.0.len())];
            nodes.iter().map(|&probability| DesignSums::of(probability)).sum::<DesignSums>()
        });
        sums.into_iter().sum()
    }
}

/// Sums over *all* nodes, reporting or not, in units of 2^-64. They are exact, so the order of
/// adding does not matter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DesignSums {
    /// The sum of the participation probabilities.
    pub probability: u128,
    /// The sum of their squares.
    pub probability_squared: u128,
}

impl DesignSums {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in [0, 2^64]")]
    fn of(probability: f64) -> Self {
        let scale = 18_446_744_073_709_551_616.0;
        Self {
            probability: (probability * scale) as u128,
            probability_squared: (probability * probability * scale) as u128,
        }
    }
}

impl core::iter::Sum for DesignSums {
    /// At most 2^64 nodes: the sums cannot overflow.
    fn sum<I: Iterator<Item = Self>>(sums: I) -> Self {
        sums.fold(Self::default(), |total, other| Self {
            probability: total.probability.saturating_add(other.probability),
            probability_squared: total
                .probability_squared
                .saturating_add(other.probability_squared),
        })
    }
}

/// How nodes are selected.
#[derive(Debug, Clone)]
pub struct Selection<'a>(Rule<'a>);

#[derive(Debug, Clone)]
enum Rule<'a> {
    Everyone,
    Bernoulli(Box<Skips>),
    Personalized(NodeProbabilities<'a>),
}

impl<'a> Selection<'a> {
    /// Every node reports.
    #[must_use]
    pub const fn everyone() -> Self {
        Self(Rule::Everyone)
    }

    /// Every node reports with the same probability, independently.
    #[must_use]
    pub fn bernoulli(rate: Probability) -> Self {
        if rate == Probability::ONE {
            return Self::everyone();
        }
        Self(Rule::Bernoulli(Box::new(Skips::new(rate))))
    }

    /// Every node reports with a probability of its own, independently.
    #[must_use]
    pub const fn personalized(probabilities: NodeProbabilities<'a>) -> Self {
        Self(Rule::Personalized(probabilities))
    }

    /// The probabilities of the nodes, if each has its own.
    #[must_use]
    pub const fn probabilities(&self) -> Option<NodeProbabilities<'a>> {
        match self.0 {
            Rule::Personalized(probabilities) => Some(probabilities),
            Rule::Everyone | Rule::Bernoulli(_) => None,
        }
    }

    /// Tells whether every node is certain to report.
    #[must_use]
    pub const fn is_everyone(&self) -> bool {
        matches!(self.0, Rule::Everyone)
    }

    pub(crate) fn check_length(&self, nodes: usize) -> Result<()> {
        match self.probabilities() {
            Some(probabilities) if probabilities.get().len() != nodes => {
                Err(Error::LengthMismatch {
                    left: "probabilities",
                    left_length: probabilities.get().len(),
                    right: "values",
                    right_length: nodes,
                })
            }
            _ => Ok(()),
        }
    }

    /// Returns the positions of those of `nodes` nodes that take part, in ascending order. They are
    /// the nodes whose reports a call with the same streams returns, in the same order.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] if there is not one probability for each node.
    ///
    /// ```
    /// use turnout_core::frequency::Selection;
    /// use turnout_core::random::AesStreams;
    ///
    /// let positions = Selection::everyone().participants(3, &AesStreams::from_seed(1))?;
    /// assert_eq!(positions, [0, 1, 2]);
    /// # Ok::<(), turnout_core::Error>(())
    /// ```
    pub fn participants<S: Streams>(&self, nodes: usize, streams: &S) -> Result<Vec<i64>> {
        self.check_length(nodes)?;
        let pieces: Vec<Vec<i64>> =
            parallel::map_with(nodes.div_ceil(CHUNK), Vec::new, |selected, chunk| {
                let start = chunk * CHUNK;
                self.select(streams, chunk, CHUNK.min(nodes - start), selected);
                let first = (start as u64).cast_signed();
                selected.iter().map(|&position| first + i64::from(position)).collect()
            });
        Ok(pieces.concat())
    }

    /// The positions, within chunk `chunk` of `length` nodes, of those that take part.
    pub(crate) fn select<S: Streams>(
        &self,
        streams: &S,
        chunk: usize,
        length: usize,
        selected: &mut Vec<u16>,
    ) {
        let mut stream = streams.stream(Purpose::Participation, chunk as u64);
        selected.clear();
        match &self.0 {
            #[expect(clippy::cast_possible_truncation, reason = "a chunk has 2^16 nodes")]
            Rule::Everyone => selected.extend((0..length).map(|position| position as u16)),
            Rule::Bernoulli(skips) => skips.select(length, &mut stream, selected),
            Rule::Personalized(probabilities) => {
                let start = chunk * CHUNK;
                for (position, &probability) in
                    (0_u16..=u16::MAX).zip(&probabilities.get()[start..start + length])
                {
                    // The probability was checked: the trial always exists.
                    if Bernoulli::new(probability).is_ok_and(|trial| trial.draw(&mut stream)) {
                        selected.push(position);
                    }
                }
            }
        }
    }
}
