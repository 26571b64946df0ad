//! Many reports at once, on the current rayon pool.

use std::collections::HashSet;

use super::engine::{Entire, Setting};
use super::{
    Error, Finished, Incoming, Measure, NONCE_SIZE, Prio3, Report, Result, Started, VERIFY_KEY_SIZE,
};
use crate::parallel;

/// How many reports one job takes.
const REPORTS: usize = 32;

/// A report at the helper, with the leader's message.
#[derive(Debug, Clone, Copy)]
pub struct Given<'a> {
    /// The helper's part of the report.
    pub report: Incoming<'a>,
    /// The leader's message.
    pub leader_message: &'a [u8],
}

/// A report at the leader, with the helper's message.
#[derive(Debug, Clone, Copy)]
pub struct Continued<'a> {
    /// The state that the leader kept.
    pub state: &'a [u8],
    /// The helper's message.
    pub helper_message: &'a [u8],
}

/// The result of verifying reports together, for all aggregators.
#[derive(Debug, Clone, PartialEq)]
pub struct Together {
    /// The aggregate share of each aggregator, in their order.
    pub aggregate_shares: Vec<Vec<u8>>,
    /// For each report: why it was refused, or `None` if the shares include it.
    pub refused: Vec<Option<Error>>,
}

impl Prio3 {
    /// Shares one vote for each nonce: an item, or nothing for a negative number.
    ///
    /// A histogram counts "nothing" in its last bucket.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if votes do not fit the measure; [`crate::Error::LengthMismatch`] if
    /// there is not one nonce for each vote; those of [`Prio3::shard`].
    pub fn shard_votes(
        &self,
        context: &[u8],
        votes: &[i64],
        nonces: &[[u8; NONCE_SIZE]],
    ) -> Result<Vec<Report>> {
        same_length("votes", votes.len(), nonces.len())?;
        let (items, multihot) = match self.measure() {
            Measure::MultihotCountVec { length, .. } => (u64::from(length), true),
            Measure::Histogram { length, .. } => (u64::from(length) - 1, false),
            _ => {
                let (argument, value) = ("algorithm_id", self.algorithm_id().into());
                let expected = "4 (Histogram) or 5 (MultihotCountVec) to share votes";
                return Err(Error::Parameter { argument, value, expected });
            }
        };
        let beyond = |vote: &i64| u64::try_from(*vote).is_ok_and(|item| item >= items);
        let offenders = votes.iter().filter(|vote| beyond(vote)).count();
        if let Some(index) = votes.iter().position(beyond) {
            let (argument, domain_size) = ("votes", items);
            let error = crate::Error::CodeOutsideDomain { argument, index, domain_size, offenders };
            return Err(error.into());
        }
        let reports = parallel::map(votes.len(), |index| {
            let item = u64::try_from(votes[index]).ok();
            let measurement = if multihot {
                (0..items).map(|each| u64::from(item == Some(each))).collect()
            } else {
                vec![item.unwrap_or(items)]
            };
            self.shard(context, &measurement, &nonces[index])
        });
        reports.into_iter().collect()
    }

    /// Shares the numbers of one report for each nonce. A report has as many numbers as the sum;
    /// they are given one report after another.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if numbers do not fit the measure; [`Error::Measurement`] if one is
    /// above the largest; [`crate::Error::LengthMismatch`] if a nonce has more or fewer numbers;
    /// those of [`Prio3::shard`].
    pub fn shard_numbers(
        &self,
        context: &[u8],
        numbers: &[u64],
        nonces: &[[u8; NONCE_SIZE]],
    ) -> Result<Vec<Report>> {
        let (Measure::Count | Measure::Sum { .. } | Measure::SumVec { .. }) = self.measure() else {
            let (argument, value) = ("algorithm_id", self.algorithm_id().into());
            let expected = "1 (Count), 2 (Sum) or 3 (SumVec) to share numbers";
            return Err(Error::Parameter { argument, value, expected });
        };
        let width = self.output_length();
        same_length("numbers", numbers.len(), nonces.len() * width)?;
        let reports = parallel::map(nonces.len(), |index| {
            let row = index * width..(index + 1) * width;
            self.shard(context, &numbers[row], &nonces[index])
        });
        reports.into_iter().collect()
    }

    /// Applies [`Prio3::leader_initialized`] to each of many reports.
    #[must_use]
    pub fn leader_initialized_many(
        &self,
        verify_key: &[u8; VERIFY_KEY_SIZE],
        context: &[u8],
        reports: &[Incoming<'_>],
    ) -> Vec<Result<Started>> {
        let begin = |index| self.leader_initialized(verify_key, context, reports[index]);
        parallel::map(reports.len(), begin)
    }

    /// Applies [`Prio3::helper_initialized`] to each of many reports.
    #[must_use]
    pub fn helper_initialized_many(
        &self,
        verify_key: &[u8; VERIFY_KEY_SIZE],
        context: &[u8],
        reports: &[Given<'_>],
    ) -> Vec<Result<Finished>> {
        parallel::map(reports.len(), |index| {
            let Given { report, leader_message } = reports[index];
            self.helper_initialized(verify_key, context, report, leader_message)
        })
    }

    /// Applies [`Prio3::leader_continued`] to each of many reports.
    #[must_use]
    pub fn leader_continued_many(
        &self,
        context: &[u8],
        reports: &[Continued<'_>],
    ) -> Vec<Result<Vec<u8>>> {
        parallel::map(reports.len(), |index| {
            let Continued { state, helper_message } = reports[index];
            self.leader_continued(context, state, helper_message)
        })
    }

    /// Verifies reports as all aggregators would, in one process, and adds up the valid ones.
    ///
    /// Like aggregators, it refuses a report whose nonce an earlier report has.
    ///
    /// # Errors
    ///
    /// No error concerns a single report: those are in [`Together::refused`].
    pub fn verify_together(
        &self,
        verify_key: &[u8; VERIFY_KEY_SIZE],
        context: &[u8],
        reports: &[Entire<'_>],
    ) -> Result<Together> {
        let setting = Setting { verify_key, context };
        let mut nonces = HashSet::with_capacity(reports.len());
        let (fresh, replayed): (Vec<_>, Vec<_>) =
            (0..reports.len()).partition(|index| nonces.insert(reports[*index].nonce));
        let parts = parallel::map(fresh.len().div_ceil(REPORTS), |job| {
            let range = parallel::chunk(job, REPORTS, fresh.len());
            let reports: Vec<_> = fresh[range].iter().map(|index| reports[*index]).collect();
            self.engine.together(setting, &reports)
        });
        let mut shares = vec![Vec::new(); self.aggregators().into()];
        let mut refused = vec![None; reports.len()];
        let mut indices = fresh.iter();
        for (sums, outcomes) in parts {
            shares.iter_mut().zip(sums).for_each(|(shares, sum)| shares.push(sum));
            for (outcome, index) in outcomes.into_iter().zip(&mut indices) {
                refused[*index] = outcome;
            }
        }
        for index in replayed {
            refused[index] = Some(Error::Replayed);
        }
        let add = |sums: &Vec<Vec<u8>>| {
            let sums: Vec<&[u8]> = sums.iter().map(Vec::as_slice).collect();
            self.aggregate(&self.aggregate_init(), &sums)
        };
        let aggregate_shares = shares.iter().map(add).collect::<Result<_>>()?;
        Ok(Together { aggregate_shares, refused })
    }
}

fn same_length(left: &'static str, left_length: usize, right_length: usize) -> Result<()> {
    if left_length == right_length {
        return Ok(());
    }
    let right = "nonces";
    Err(crate::Error::LengthMismatch { left, left_length, right, right_length }.into())
}
