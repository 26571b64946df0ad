//! Many reports at once, on the current rayon pool.

use std::collections::HashSet;

use super::engine::{Entire, Setting};
use super::{
    Error, Finished, Incoming, Measure, NONCE_SIZE, Prio3, Report, Result, Started, VERIFY_KEY_SIZE,
};
use crate::parallel;

/// How many reports one job takes.
const REPORTS: usize = 32;

/// A report at the helper, with what the leader sent.
#[derive(Debug, Clone, Copy)]
pub struct Given<'a> {
    /// What the helper has of the report.
    pub report: Incoming<'a>,
    /// What the leader sent.
    pub leader_message: &'a [u8],
}

/// A report at the leader, with what the helper sent.
#[derive(Debug, Clone, Copy)]
pub struct Continued<'a> {
    /// What the leader kept.
    pub state: &'a [u8],
    /// What the helper sent.
    pub helper_message: &'a [u8],
}

/// What all aggregators have once they have verified reports together.
#[derive(Debug, Clone, PartialEq)]
pub struct Together {
    /// The aggregate share of each aggregator, in their order.
    pub aggregate_shares: Vec<Vec<u8>>,
    /// Of each report: why it was refused, or nothing if it is in the shares.
    pub refused: Vec<Option<Error>>,
}

impl Prio3 {
    /// Shares one vote for each nonce: an item, or nothing where the vote is negative.
    ///
    /// For a histogram nothing is its last bucket.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] if votes are not what is measured, [`crate::Error::LengthMismatch`] if
    /// there is not one nonce for each vote, and what [`Prio3::shard`] says.
    pub fn shard_votes(
        &self,
        context: &[u8],
        votes: &[i64],
        nonces: &[[u8; NONCE_SIZE]],
    ) -> Result<Vec<Report>> {
        let (left_length, right_length) = (votes.len(), nonces.len());
        if left_length != right_length {
            let (left, right) = ("votes", "nonces");
            let error = crate::Error::LengthMismatch { left, left_length, right, right_length };
            return Err(error.into());
        }
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

    /// [`Prio3::leader_initialized`] for each of many reports.
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

    /// [`Prio3::helper_initialized`] for each of many reports.
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

    /// [`Prio3::leader_continued`] for each of many reports.
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

    /// Verifies reports as all aggregators would, in one process, and adds up those that hold.
    ///
    /// A nonce that another report before it has is refused, as aggregators do.
    ///
    /// # Errors
    ///
    /// None of a report: those are in [`Together::refused`].
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
