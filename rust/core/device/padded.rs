//! An answer that is sometimes the person's own, and otherwise uniform.

use super::answers::{Answers, Domain};
use super::coded::check;
use super::error::{Result, refused};
use super::labels::Labels;
use super::members::Members;
use super::noise::Noise;
use super::oracles::Randomizer;
use super::question::{Description, Question, Reports};
use crate::frequency::Selection;
use crate::random::{choose_many, uniform_integers};
use crate::wire::Layout;

/// The denominator of the probability of the own answer.
const SCALE: u64 = 1 << 62;

/// A question whose reports are about the own answer with some probability, and else about any.
pub(crate) struct Padded {
    domain: Domain,
    size: u64,
    oracle: Randomizer,
    /// The probability of the own answer, in units of 1 / [`SCALE`].
    real: u64,
}

impl Padded {
    /// Reads such a question.
    pub(crate) fn read(mut asked: Description<'_, '_>) -> Result<Self> {
        let labels = Labels::read(asked.domain)?;
        let own: f64 = asked.rest.take("own_probability")?;
        let inner = Description::read(asked.rest.take::<Members<'_, '_>>("oracle")?)?;
        asked.rest.finish()?;
        let same = inner.epsilon.to_bits() == asked.epsilon.to_bits()
            && inner.domain.raw() == asked.domain.raw();
        if !(same && own > 0.0 && own <= 1.0) {
            return Err(refused(
                "own_probability is no probability, or the oracle is of another epsilon or domain",
            ));
        }
        // Exact, and cut off: a product with a power of two.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 2^62")]
        let real = ((own * SCALE as f64) as u64).max(1);
        let size = labels.size();
        let oracle = Randomizer::read(inner, size)?;
        Ok(Self { domain: Domain::Labels(labels), size, oracle, real })
    }
}

impl Question for Padded {
    fn domain(&self) -> &Domain {
        &self.domain
    }

    fn layout(&self) -> Layout {
        self.oracle.layout()
    }

    fn reports(
        &self,
        answers: &Answers,
        selection: &Selection<'_>,
        noise: Noise,
    ) -> Result<Reports> {
        let codes = answers.codes()?;
        check(codes, self.size)?;
        let weights = [SCALE - self.real, self.real];
        let real = choose_many(&weights, codes.len(), &noise.part(&[0]).streams()?)?;
        let real: Vec<bool> = real.into_iter().map(|chosen| chosen == 1).collect();
        let codes = padded(codes, &real, self.size, noise.part(&[1]))?;
        self.oracle.reports(&codes, selection, &noise.streams()?)
    }
}

/// The own codes where they are real, and uniform ones elsewhere.
pub(crate) fn padded(codes: &[u32], real: &[bool], size: u64, noise: Noise) -> Result<Vec<u32>> {
    let fake = uniform_integers(size, codes.len(), &noise.streams()?)?;
    let fake = fake.into_iter().map(|code| u32::try_from(code).unwrap_or(u32::MAX));
    Ok(codes
        .iter()
        .zip(real)
        .zip(fake)
        .map(|((&own, &real), fake)| if real { own } else { fake })
        .collect())
}
