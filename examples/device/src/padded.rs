//! An answer that is only sometimes the own one, and otherwise a uniform one.

use turnout_core::frequency::Selection;
use turnout_core::random::{choose_many, uniform_integers};

use crate::Refusal;
use crate::labels::Labels;
use crate::members::Members;
use crate::noise::Noise;
use crate::oracles::{Nodes, Randomizer};
use crate::question::{Answers, Description, Question};
use crate::reports::Report;

/// The denominator of the share of own answers.
const SCALE: u64 = 1 << 62;

/// A question of which only a share of the reports is about the own answer.
pub(crate) struct Padded {
    labels: Labels,
    oracle: Randomizer,
    /// The share, in units of 1 / [`SCALE`].
    real: u64,
}

impl Padded {
    pub(crate) fn read(mut asked: Description<'_>) -> Result<Self, Refusal> {
        let labels = Labels::read(asked.domain)?;
        let share: f64 = asked.rest.take("share")?;
        let inner = Description::read(asked.rest.take::<Members<'_>>("oracle")?)?;
        asked.rest.finish()?;
        let same = inner.epsilon.to_bits() == asked.epsilon.to_bits()
            && inner.domain.get() == asked.domain.get();
        if !(same && share > 0.0 && share <= 1.0) {
            return Err(
                "the share is no probability, or the oracle is of another epsilon or domain"
                    .to_owned(),
            );
        }
        // Exact, and cut off: a product with a power of two.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 2^62")]
        let real = ((share * SCALE as f64) as u64).max(1);
        Ok(Self { oracle: Randomizer::read(inner, labels.size())?, labels, real })
    }
}

impl Question for Padded {
    fn reports(
        &self,
        answers: Answers<'_>,
        selection: &Selection<'_>,
        noise: Noise,
    ) -> Result<Vec<Report>, Refusal> {
        let codes = answers.each(|line| self.labels.find(line, answers.codes))?;
        let weights = [SCALE - self.real, self.real];
        let real = choose_many(&weights, codes.len(), &noise.part(&[0]).streams()?)
            .map_err(|error| error.to_string())?;
        let real: Vec<bool> = real.into_iter().map(|chosen| chosen == 1).collect();
        let codes = &padded(&codes, &real, self.labels.size(), noise.part(&[1]))?;
        self.oracle.reports(Nodes { codes, selection, streams: &noise.streams()? })
    }
}

/// The own codes where they are real, and uniform ones elsewhere.
pub(crate) fn padded(
    codes: &[u32],
    real: &[bool],
    size: u64,
    noise: Noise,
) -> Result<Vec<u32>, Refusal> {
    let fake = uniform_integers(size, codes.len(), &noise.streams()?)
        .map_err(|error| error.to_string())?;
    let fake = fake.into_iter().map(|code| u32::try_from(code).unwrap_or(u32::MAX));
    Ok(codes
        .iter()
        .zip(real)
        .zip(fake)
        .map(|((&own, &real), fake)| if real { own } else { fake })
        .collect())
}
