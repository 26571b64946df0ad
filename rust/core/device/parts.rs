//! Questions made of other questions: a person reports one part, drawn without regard to the
//! answer, or all of them.
//!
//! A report is a row of unsigned integers. If a node draws its part, the row begins with the number
//! of the part. The report of the part's randomizer follows, then zeros up to the width of the
//! widest part. If a node reports all parts, they stand side by side.

use super::answers::{Answers, Domain};
use super::coded::check;
use super::columns::{Columns, combined};
use super::error::{Error, Result, refused};
use super::labels::Labels;
use super::members::Members;
use super::noise::Noise;
use super::oracles::Randomizer;
use super::padded::padded;
use super::question::{Description, Question, Reports};
use super::rounds::chosen;
use crate::frequency::Selection;
use crate::random::choose_many;
use crate::wire::{Integer, Layout};

/// The largest weight of a part.
const MOST_WEIGHT: u64 = 1 << 62;

/// How answers become those of the parts.
enum Asked {
    /// Which run of each level holds the answer: for each level how long its runs are.
    Runs(Vec<u64>),
    /// Several questions, a part for each.
    Each,
    /// Several questions, a part for each two of them.
    Pairs(Vec<(usize, usize)>),
}

/// Which parts a node reports.
enum Reported {
    All,
    /// One, drawn by these weights.
    One(Vec<u64>),
    /// All, but with a uniform answer to all except the one that is drawn by these weights.
    Padded(Vec<u64>),
}

/// A question made of others.
pub(crate) struct Parts {
    domain: Domain,
    asked: Asked,
    each: Vec<Part>,
    reported: Reported,
}

/// One of the others.
struct Part {
    oracle: Randomizer,
    /// How many codes it has.
    size: u64,
}

impl Parts {
    /// Reads the levels of a tree over ordered answers.
    pub(crate) fn hierarchical(mut asked: Description<'_, '_>) -> Result<Self> {
        let labels = Labels::read(asked.domain)?;
        let fanout: u64 = asked.rest.take("fanout")?;
        let levels: Vec<Members<'_, '_>> = asked.rest.take("oracle")?;
        asked.rest.finish()?;
        if fanout < 2 {
            return Err(refused(format!("the fanout is {fanout}")));
        }
        let lengths = lengths(labels.size(), fanout);
        if levels.len() != lengths.len() {
            return Err(refused("there is not one oracle for each level"));
        }
        let part = |(described, length): (Members<'_, '_>, &u64)| {
            let size = labels.size().div_ceil(*length);
            let level = Description::read(described)?;
            if level.epsilon > asked.epsilon {
                return Err(refused("a level has a larger epsilon than the whole"));
            }
            if !Labels::are_codes(level.domain, size)? {
                return Err(refused("a level is of other runs"));
            }
            Ok(Part { oracle: Randomizer::read(level, size)?, size })
        };
        let each: Vec<Part> =
            levels.into_iter().zip(&lengths).map(part).collect::<Result<_, _>>()?;
        let reported = Reported::One(vec![1; each.len()]);
        Ok(Self { domain: Domain::Labels(labels), asked: Asked::Runs(lengths), each, reported })
    }

    /// Reads the tables of every two of several questions.
    pub(crate) fn pairs(mut asked: Description<'_, '_>) -> Result<Self> {
        let columns = Columns::read(asked.domain)?;
        let pairs = columns.pairs()?;
        let tables: Vec<Members<'_, '_>> = asked.rest.take("oracle")?;
        asked.rest.finish()?;
        if tables.len() != pairs.len() {
            return Err(refused("there is not one oracle for each two questions"));
        }
        let part = |(described, &pair): (Members<'_, '_>, &(usize, usize))| {
            let size = of_pair(&columns.sizes(), pair).into_iter().product();
            Ok(Part { oracle: Randomizer::of_codes(described, asked.epsilon, size)?, size })
        };
        let each: Vec<Part> = tables.into_iter().zip(&pairs).map(part).collect::<Result<_>>()?;
        let reported = Reported::One(vec![1; each.len()]);
        Ok(Self { domain: Domain::Columns(columns), asked: Asked::Pairs(pairs), each, reported })
    }

    /// Reads several questions of which one is drawn.
    pub(crate) fn sampled(mut asked: Description<'_, '_>) -> Result<Self> {
        let padding: Option<String> = asked.rest.take("padding")?;
        let (columns, each, weights) = attributes(&mut asked)?;
        let reported = match padding.as_deref() {
            None => Reported::One(weights),
            Some("fake") => Reported::Padded(weights),
            Some(_) => return Err(refused("the padding is neither null nor fake")),
        };
        if each.iter().any(|part| part.oracle.epsilon() > asked.epsilon) {
            return Err(refused("a question has a larger epsilon than the whole"));
        }
        Ok(Self { domain: Domain::Columns(columns), asked: Asked::Each, each, reported })
    }

    /// Reads several questions that have a part of epsilon each.
    pub(crate) fn split(mut asked: Description<'_, '_>) -> Result<Self> {
        let (columns, each, _) = attributes(&mut asked)?;
        let spent = each
            .iter()
            .fold(0, |sum: u128, part| sum.saturating_add(units(part.oracle.epsilon(), f64::ceil)));
        if spent > units(asked.epsilon, f64::floor) {
            return Err(refused("the questions have a larger epsilon together than the whole"));
        }
        let reported = Reported::All;
        Ok(Self { domain: Domain::Columns(columns), asked: Asked::Each, each, reported })
    }

    /// What each part is asked: for each part the codes of all people.
    fn codes(&self, codes: &[u32]) -> Result<Vec<Vec<u32>>> {
        match (&self.asked, &self.domain) {
            (Asked::Runs(lengths), Domain::Labels(labels)) => {
                check(codes, labels.size())?;
                let run = |length: u64| {
                    let run =
                        move |&code: &u32| u32::try_from(u64::from(code) / length).unwrap_or(0);
                    codes.iter().map(run).collect()
                };
                Ok(lengths.iter().copied().map(run).collect())
            }
            (Asked::Each, Domain::Columns(columns)) => {
                columns.check(codes)?;
                Ok((0..self.each.len()).map(|place| columns.column(codes, place)).collect())
            }
            (Asked::Pairs(pairs), Domain::Columns(columns)) => {
                columns.check(codes)?;
                let sizes = columns.sizes();
                let cell = |row, pair| combined(&of_pair(row, pair), &of_pair(&sizes, pair));
                let cells = |&pair: &(usize, usize)| {
                    codes.chunks_exact(sizes.len()).map(|row| cell(row, pair)).collect()
                };
                Ok(pairs.iter().map(cells).collect())
            }
            // Runs are of labels, and the others of several questions.
            _ => Err(Error::OtherAnswers("answers are of another domain")),
        }
    }
}

impl Question for Parts {
    fn domain(&self) -> &Domain {
        &self.domain
    }

    /// As wide as the widest part, or as all of them, of the widest integers.
    fn layout(&self) -> Layout {
        let widths = self.each.iter().map(|part| part.oracle.layout().integers());
        let bytes = self.each.iter().map(|part| part.oracle.layout().integer().bytes()).max();
        let wide = Integer::new(bytes.unwrap_or(1), false);
        let number = Integer::narrowest(self.each.len() as u64);
        let wide = wide.unwrap_or(number);
        match self.reported {
            Reported::One(_) => {
                let integer = if wide.bytes() < number.bytes() { number } else { wide };
                Layout::row(integer, 1 + widths.max().unwrap_or(0))
            }
            Reported::All | Reported::Padded(_) => Layout::row(wide, widths.sum()),
        }
    }

    fn reports(
        &self,
        answers: &Answers,
        selection: &Selection<'_>,
        noise: Noise,
    ) -> Result<Reports> {
        let codes = self.codes(answers.codes()?)?;
        let people = codes.first().map_or(0, Vec::len);
        let present = selection.participants(people, &noise.streams()?)?;
        let drawn = match &self.reported {
            Reported::All => Vec::new(),
            Reported::One(weights) | Reported::Padded(weights) => {
                choose_many(weights, present.len(), &noise.part(&[0]).streams()?)?
            }
        };
        let layout = self.layout();
        // For each person the bytes of a row, and how many were written.
        let mut made = vec![0; present.len() * layout.bytes()];
        let mut rows: Vec<Row<'_>> = made.chunks_mut(layout.bytes().max(1)).map(Row::of).collect();
        let wide = layout.integer().bytes();
        for ((number, part), codes) in (0_u64..).zip(&self.each).zip(&codes) {
            let own: Vec<u32> = chosen(codes, &present).collect();
            let mine: Vec<bool> = drawn.iter().map(|&place| place as u64 == number).collect();
            let only = matches!(self.reported, Reported::One(_));
            let own = match self.reported {
                Reported::All => own,
                Reported::One(_) => own
                    .into_iter()
                    .zip(&mine)
                    .filter_map(|(code, &mine)| mine.then_some(code))
                    .collect(),
                Reported::Padded(_) => padded(&own, &mine, part.size, noise.part(&[2, number]))?,
            };
            let streams = &noise.part(&[1, number]).streams()?;
            let reports = part.oracle.reports(&own, &Selection::everyone(), streams)?;
            let theirs = rows
                .iter_mut()
                .enumerate()
                .filter(|(place, _)| !only || mine.get(*place).copied().unwrap_or(false));
            let narrow = part.oracle.layout().integer().bytes();
            for ((_, row), report) in
                theirs.zip(reports.chunks(part.oracle.layout().bytes().max(1)))
            {
                if only {
                    row.push(&number.to_le_bytes(), wide);
                }
                for word in report.chunks(narrow) {
                    row.push(word, wide);
                }
            }
        }
        Ok(made)
    }
}

/// A row that is written from its beginning.
struct Row<'a>(&'a mut [u8]);

impl<'a> Row<'a> {
    const fn of(bytes: &'a mut [u8]) -> Self {
        Self(bytes)
    }

    /// Writes an integer of so many bytes, of which the last are zeros where fewer are given.
    fn push(&mut self, word: &[u8], wide: usize) {
        let rest = core::mem::take(&mut self.0);
        let (place, rest) = rest.split_at_mut(wide.min(rest.len()));
        for (byte, &given) in place.iter_mut().zip(word) {
            *byte = given;
        }
        self.0 = rest;
    }
}

/// How long the runs of each level are: the last has single answers.
fn lengths(size: u64, fanout: u64) -> Vec<u64> {
    let longer = |length: &u64| Some(length.saturating_mul(fanout)).filter(|&length| length < size);
    let mut found: Vec<u64> = std::iter::successors(Some(1), longer).collect();
    found.reverse();
    found
}

/// What two questions have.
fn of_pair<T: Copy>(items: &[T], pair: (usize, usize)) -> Vec<T> {
    [pair.0, pair.1].iter().filter_map(|&place| items.get(place).copied()).collect()
}

/// The randomizers and the weights of several questions.
fn attributes(asked: &mut Description<'_, '_>) -> Result<(Columns, Vec<Part>, Vec<u64>)> {
    let columns = Columns::read(asked.domain)?;
    let oracles: Vec<Members<'_, '_>> = asked.rest.take("oracle")?;
    let weights: Vec<u64> = asked.rest.take("weights")?;
    asked.rest.finish()?;
    let sizes = columns.sizes();
    let fits = oracles.len() == sizes.len() && weights.len() == sizes.len();
    if !fits || !weights.iter().all(|weight| (1..=MOST_WEIGHT).contains(weight)) {
        return Err(refused("there is not an oracle and a weight for each question"));
    }
    if !(asked.epsilon > 0.0 && asked.epsilon.is_finite()) {
        return Err(refused("epsilon must be a finite number above 0"));
    }
    let part = |((place, described), size): ((usize, Members<'_, '_>), u64)| {
        let inner = Description::read(described)?;
        if !columns.has(place, inner.domain) {
            return Err(refused("an oracle has another domain than its question"));
        }
        Ok(Part { oracle: Randomizer::read(inner, size)?, size })
    };
    let each = oracles.into_iter().enumerate().zip(sizes).map(part).collect::<Result<_>>()?;
    Ok((columns, each, weights))
}

/// An epsilon in units of 2^-100: exact from 2^-48 on; what is too large for that is the largest number.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "above 0, saturates")]
fn units(epsilon: f64, rounded: impl Fn(f64) -> f64) -> u128 {
    rounded(epsilon * 2_f64.powi(100)) as u128
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_as_long_as_powers_of_the_fanout() {
        assert_eq!(lengths(10, 3), [9, 3, 1]);
        assert_eq!(lengths(9, 3), [3, 1]);
        assert_eq!(lengths(2, u64::MAX), [1]);
        assert_eq!(lengths(4_294_967_295, 65_536), [65_536, 1]);
    }

    #[test]
    fn epsilons_are_added_up_exactly() {
        let (up, down) =
            (|epsilon| units(epsilon, f64::ceil), |epsilon| units(epsilon, f64::floor));
        assert!(3 * up(1.0 / 3.0) < down(1.0));
        assert!(up(0.1) + up(0.2) > down(0.3));
        assert_eq!((up(0.1), up(1e300)), (down(0.1), u128::MAX));
        let least = 2_f64.powi(-48);
        assert_eq!(up(least.next_up()) - down(least), 1);
    }
}
