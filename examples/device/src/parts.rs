//! Questions made of others: a node reports one part that it draws, whatever its answer, or all.
//!
//! A report is a row of unsigned integers. Where a node draws its part, the row begins with the number
//! of the part; what the part's randomizer reported follows, and zeros up to the width of the widest.
//! Where it reports all parts, they stand beside each other.

use turnout_core::frequency::Selection;
use turnout_core::random::choose_many;

use crate::Refusal;
use crate::columns::{Columns, combined};
use crate::labels::Labels;
use crate::members::Members;
use crate::noise::Noise;
use crate::oracles::{Nodes, Randomizer};
use crate::padded::padded;
use crate::question::{Answers, Description, Question};
use crate::reports::{Layout, Report, narrowest};
use crate::rounds::chosen;

/// The largest weight of a part.
const MOST_WEIGHT: u64 = 1 << 62;

/// What is asked, and how its answers become those of the parts.
enum Asked {
    /// Which run of each level holds the answer: for each level how long its runs are.
    Runs(Labels, Vec<u64>),
    /// Several questions, a part for each.
    Each(Columns),
    /// Several questions, a part for each two of them.
    Pairs(Columns, Vec<(usize, usize)>),
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
    pub(crate) fn hierarchical(mut asked: Description<'_>) -> Result<Self, Refusal> {
        let labels = Labels::read(asked.domain)?;
        let fanout: u64 = asked.rest.take("fanout")?;
        let levels: Vec<Members<'_>> = asked.rest.take("oracle")?;
        asked.rest.finish()?;
        if fanout < 2 {
            return Err(format!("the fanout is {fanout}"));
        }
        let lengths = lengths(labels.size(), fanout);
        if levels.len() != lengths.len() {
            return Err("there is not one oracle for each level".to_owned());
        }
        let part = |(described, length): (Members<'_>, &u64)| {
            let size = labels.size().div_ceil(*length);
            let level = Description::read(described)?;
            if level.epsilon > asked.epsilon {
                return Err("a level has a larger epsilon than the whole".to_owned());
            }
            let codes =
                matches!(Labels::read(level.domain)?, Labels::Integers(found) if found == size);
            if !codes {
                return Err("a level is of other runs".to_owned());
            }
            Ok(Part { oracle: Randomizer::read(level, size)?, size })
        };
        let each: Vec<Part> =
            levels.into_iter().zip(&lengths).map(part).collect::<Result<_, _>>()?;
        let reported = Reported::One(vec![1; each.len()]);
        Ok(Self { asked: Asked::Runs(labels, lengths), each, reported })
    }

    /// Reads the tables of every two of several questions.
    pub(crate) fn pairs(mut asked: Description<'_>) -> Result<Self, Refusal> {
        let columns = Columns::read(asked.domain)?;
        let pairs = columns.pairs()?;
        let tables: Vec<Members<'_>> = asked.rest.take("oracle")?;
        asked.rest.finish()?;
        if tables.len() != pairs.len() {
            return Err("there is not one oracle for each two questions".to_owned());
        }
        let part = |(described, &pair): (Members<'_>, &(usize, usize))| {
            let size = of_pair(&columns.sizes(), pair).into_iter().product();
            Ok(Part { oracle: Randomizer::of_codes(described, asked.epsilon, size)?, size })
        };
        let each: Vec<Part> =
            tables.into_iter().zip(&pairs).map(part).collect::<Result<_, Refusal>>()?;
        let reported = Reported::One(vec![1; each.len()]);
        Ok(Self { asked: Asked::Pairs(columns, pairs), each, reported })
    }

    /// Reads several questions of which one is drawn.
    pub(crate) fn sampled(mut asked: Description<'_>) -> Result<Self, Refusal> {
        let padding: Option<String> = asked.rest.take("padding")?;
        let (columns, each, weights) = attributes(&mut asked)?;
        let reported = match padding.as_deref() {
            None => Reported::One(weights),
            Some("fake") => Reported::Padded(weights),
            Some(_) => return Err("the padding is neither null nor fake".to_owned()),
        };
        if each.iter().any(|part| part.oracle.epsilon > asked.epsilon) {
            return Err("a question has a larger epsilon than the whole".to_owned());
        }
        Ok(Self { asked: Asked::Each(columns), each, reported })
    }

    /// Reads several questions that have a part of epsilon each.
    pub(crate) fn split(mut asked: Description<'_>) -> Result<Self, Refusal> {
        let (columns, each, _) = attributes(&mut asked)?;
        let spent = each
            .iter()
            .fold(0, |sum: u128, part| sum.saturating_add(units(part.oracle.epsilon, f64::ceil)));
        if spent > units(asked.epsilon, f64::floor) {
            return Err("the questions have a larger epsilon together than the whole".to_owned());
        }
        Ok(Self { asked: Asked::Each(columns), each, reported: Reported::All })
    }

    /// What each part is asked: for each part the codes of all nodes.
    fn codes(&self, answers: Answers<'_>) -> Result<Vec<Vec<u32>>, Refusal> {
        let column = |rows: &[Vec<u32>], place: usize| -> Vec<u32> {
            rows.iter().filter_map(|row| row.get(place).copied()).collect()
        };
        match &self.asked {
            Asked::Runs(labels, lengths) => {
                let codes = answers.each(|line| labels.find(line, answers.codes))?;
                let run = |length: u64| {
                    let run =
                        move |&code: &u32| u32::try_from(u64::from(code) / length).unwrap_or(0);
                    codes.iter().map(run).collect()
                };
                Ok(lengths.iter().copied().map(run).collect())
            }
            Asked::Each(columns) => {
                let rows = columns.rows(answers)?;
                Ok((0..self.each.len()).map(|place| column(&rows, place)).collect())
            }
            Asked::Pairs(columns, pairs) => {
                let (rows, sizes) = (columns.rows(answers)?, columns.sizes());
                let cell =
                    |row: &Vec<u32>, pair| combined(&of_pair(row, pair), &of_pair(&sizes, pair));
                Ok(pairs
                    .iter()
                    .map(|&pair| rows.iter().map(|row| cell(row, pair)).collect())
                    .collect())
            }
        }
    }

    /// What reports look like: as wide as the widest part, or as all of them, of the widest integers.
    fn layout(&self) -> Layout {
        let widths = self.each.iter().map(|part| part.oracle.layout.words());
        let bytes = self.each.iter().map(|part| part.oracle.layout.bytes).max().unwrap_or(1);
        match self.reported {
            Reported::One(_) => {
                let number = narrowest(self.each.len() as u64);
                Layout { bytes: bytes.max(number), width: Some(1 + widths.max().unwrap_or(0)) }
            }
            Reported::All | Reported::Padded(_) => Layout { bytes, width: Some(widths.sum()) },
        }
    }
}

impl Question for Parts {
    fn reports(
        &self,
        answers: Answers<'_>,
        selection: &Selection<'_>,
        noise: Noise,
    ) -> Result<Vec<Report>, Refusal> {
        let refused = |error: turnout_core::Error| error.to_string();
        let codes = self.codes(answers)?;
        let nodes = answers.lines.len();
        let present = selection.participants(nodes, &noise.streams()?).map_err(refused)?;
        let drawn = match &self.reported {
            Reported::All => Vec::new(),
            Reported::One(weights) | Reported::Padded(weights) => {
                let streams = noise.part(&[0]).streams()?;
                choose_many(weights, present.len(), &streams).map_err(refused)?
            }
        };
        let mut rows: Vec<Vec<u64>> = vec![Vec::new(); present.len()];
        for ((number, part), codes) in (0..).zip(&self.each).zip(&codes) {
            let own: Vec<u32> = chosen(codes, &present).collect();
            let mine: Vec<bool> = drawn.iter().map(|&place| place as u64 == number).collect();
            let own = match self.reported {
                Reported::All => own,
                Reported::One(_) => own
                    .into_iter()
                    .zip(&mine)
                    .filter_map(|(code, &mine)| mine.then_some(code))
                    .collect(),
                Reported::Padded(_) => padded(&own, &mine, part.size, noise.part(&[2, number]))?,
            };
            let (codes, selection) = (own.as_slice(), &Selection::everyone());
            let streams = &noise.part(&[1, number]).streams()?;
            let reports = part.oracle.reports(Nodes { codes, selection, streams })?;
            if let Reported::One(_) = self.reported {
                let theirs =
                    rows.iter_mut().zip(mine).filter_map(|(row, mine)| mine.then_some(row));
                for (row, report) in theirs.zip(reports) {
                    row.push(number);
                    row.extend(report.words);
                }
            } else {
                for (row, report) in rows.iter_mut().zip(reports) {
                    row.extend(report.words);
                }
            }
        }
        let layout = self.layout();
        let report = |mut words: Vec<u64>| {
            words.resize(layout.words(), 0);
            Report { words, layout }
        };
        Ok(rows.into_iter().map(report).collect())
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
fn attributes(asked: &mut Description<'_>) -> Result<(Columns, Vec<Part>, Vec<u64>), Refusal> {
    let columns = Columns::read(asked.domain)?;
    let oracles: Vec<Members<'_>> = asked.rest.take("oracle")?;
    let weights: Vec<u64> = asked.rest.take("weights")?;
    asked.rest.finish()?;
    let sizes = columns.sizes();
    let fits = oracles.len() == sizes.len() && weights.len() == sizes.len();
    if !fits || !weights.iter().all(|weight| (1..=MOST_WEIGHT).contains(weight)) {
        return Err("there is not an oracle and a weight for each question".to_owned());
    }
    if !(asked.epsilon > 0.0 && asked.epsilon.is_finite()) {
        return Err("epsilon must be a finite number above 0".to_owned());
    }
    let part = |((place, described), size): ((usize, Members<'_>), u64)| {
        let inner = Description::read(described)?;
        if !columns.has(place, inner.domain) {
            return Err("an oracle has another domain than its question".to_owned());
        }
        Ok(Part { oracle: Randomizer::read(inner, size)?, size })
    };
    let each =
        oracles.into_iter().enumerate().zip(sizes).map(part).collect::<Result<_, Refusal>>()?;
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
