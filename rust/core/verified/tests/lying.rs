//! Clients that follow the protocol in everything but what they measure.

use prio::codec::Encode;
use prio::field::{Field128, FieldElement};
use prio::flp::{Flp, FlpError, Gadget, Type};
use prio::vdaf::Client;
use prio::vdaf::prio3::Prio3 as Vdaf;
use prio::vdaf::xof::XofTurboShake128;

use super::*;
use crate::verified::measure::Multihot;

/// The type of honest clients, but any elements are a measurement.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Lying(Multihot);

impl Flp for Lying {
    type Field = Field128;

    fn gadget(&self) -> Vec<Box<dyn Gadget<Field128>>> {
        self.0.gadget()
    }

    fn num_gadgets(&self) -> usize {
        self.0.num_gadgets()
    }

    fn valid(
        &self,
        gadgets: &mut Vec<Box<dyn Gadget<Field128>>>,
        input: &[Field128],
        joint: &[Field128],
        shares: usize,
    ) -> Result<Vec<Field128>, FlpError> {
        self.0.valid(gadgets, input, joint, shares)
    }

    fn input_len(&self) -> usize {
        self.0.input_len()
    }

    fn proof_len(&self) -> usize {
        self.0.proof_len()
    }

    fn verifier_len(&self) -> usize {
        self.0.verifier_len()
    }

    fn joint_rand_len(&self) -> usize {
        self.0.joint_rand_len()
    }

    fn eval_output_len(&self) -> usize {
        self.0.eval_output_len()
    }

    fn prove_rand_len(&self) -> usize {
        self.0.prove_rand_len()
    }
}

impl Type for Lying {
    type Measurement = Vec<Field128>;
    type AggregateResult = ();

    fn encode_measurement(&self, measurement: &Vec<Field128>) -> Result<Vec<Field128>, FlpError> {
        Ok(measurement.clone())
    }

    fn truncate(&self, input: Vec<Field128>) -> Result<Vec<Field128>, FlpError> {
        self.0.truncate(input)
    }

    fn decode_result(&self, _: &[Field128], _: usize) -> Result<(), FlpError> {
        Ok(())
    }

    fn output_len(&self) -> usize {
        self.0.output_len()
    }
}

/// A report of these numbers for the items, and of one for how many votes it claims to be.
fn report(aggregators: u8, numbers: &[i64], claimed: i64) -> Report {
    let Measure::MultihotCountVec { chunk_length: Some(chunk), .. } = VOTE.settled().unwrap()
    else {
        panic!("a vote")
    };
    let typ = Lying(Multihot::new(numbers.len(), 1, chunk as usize).unwrap());
    let vdaf = Vdaf::<_, XofTurboShake128, 32>::new(aggregators, 1, 5, typ).unwrap();
    let element = |number: &i64| {
        let size = Field128::from(u128::from(number.unsigned_abs()));
        if *number < 0 { -size } else { size }
    };
    let measurement = numbers.iter().chain([&claimed]).map(element).collect();
    let (public, inputs) = vdaf.shard(CONTEXT, &measurement, &nonce(1)).unwrap();
    let bytes = |value: &dyn Fn() -> Vec<u8>| value();
    Report {
        public_share: bytes(&|| public.get_encoded().unwrap()),
        input_shares: inputs.iter().map(|share| share.get_encoded().unwrap()).collect(),
    }
}

#[test]
fn only_one_vote_or_none_is_accepted() {
    assert_eq!(Field128::ENCODED_SIZE, 16);
    for aggregators in [2, 3] {
        let vdaf = Prio3::new(VOTE, aggregators).unwrap();
        // The small ones all, claims included: one item or none, and the claim that says so.
        for code in 0..4_i64.pow(5) {
            let digits: Vec<i64> = (0..5).map(|place| code / 4_i64.pow(place) % 4 - 1).collect();
            let (numbers, claimed) = (&digits[..4], digits[4]);
            let votes = numbers.iter().all(|number| (0..=1).contains(number));
            let honest = votes && numbers.iter().sum::<i64>() == claimed && claimed <= 1;
            let outcome =
                verified(&vdaf, &KEY, CONTEXT, &nonce(1), &report(aggregators, numbers, claimed));
            if honest {
                let sums = vdaf.unshard(&slices(&outcome.unwrap())).unwrap();
                assert!(sums.iter().zip(numbers).all(|(sum, number)| *sum == i128::from(*number)));
            } else {
                assert_eq!(outcome, Err(Error::Proof), "{digits:?}");
            }
        }
        let large = [[1000, 0, 0, 0], [-1000, 0, 0, 1001], [i64::MAX, -i64::MAX, 1, 0]];
        for numbers in large {
            for claimed in [0, 1, numbers.iter().sum::<i64>()] {
                let report = report(aggregators, &numbers, claimed);
                let outcome = verified(&vdaf, &KEY, CONTEXT, &nonce(1), &report);
                assert_eq!(outcome, Err(Error::Proof), "{numbers:?} {claimed}");
            }
        }
    }
}
