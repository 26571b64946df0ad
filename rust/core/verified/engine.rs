//! Prio3 over bytes, for every type of measurement.

use core::fmt::Debug;

use prio::codec::{Decode, Encode, ParameterizedDecode};
use prio::field::FieldElement;
use prio::topology::ping_pong::{PingPongMessage, PingPongState, PingPongTopology};
use prio::vdaf::prio3::{
    Prio3, Prio3InputShare, Prio3PublicShare, Prio3VerifierMessage, Prio3VerifyState,
};
use prio::vdaf::xof::XofTurboShake128;
use prio::vdaf::{Aggregator, Client, OutputShare, VerifyTransition};

use super::measure::{Measure, Measured};
use super::{Error, Finished, Incoming, NONCE_SIZE, Report, Result, Started, VERIFY_KEY_SIZE};

/// The bytes of a seed of the draft's XOF.
pub(super) const SEED: usize = 32;

type Vdaf<T> = Prio3<T, XofTurboShake128, SEED>;
type State<T> = Prio3VerifyState<<T as prio::flp::Flp>::Field, SEED>;

/// How long the parts of a report are, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub(super) public_share: usize,
    pub(super) leader_share: usize,
    pub(super) helper_share: usize,
    pub(super) leader_state: usize,
    pub(super) verifier_share: usize,
    pub(super) verifier_message: usize,
    pub(super) output_share: usize,
    pub(super) element: usize,
}

/// What [`super::Prio3`] does, whatever is measured.
pub(super) trait Engine: Send + Sync + Debug {
    fn sizes(&self) -> Sizes;
    fn modulus(&self) -> u128;
    fn shard(&self, context: &[u8], numbers: &[u64], nonce: &[u8; NONCE_SIZE]) -> Result<Report>;
    fn verify_init(
        &self,
        setting: Setting<'_>,
        aggregator: u8,
        report: Incoming<'_>,
    ) -> Result<Started>;
    fn verifier_message(&self, context: &[u8], shares: &[&[u8]]) -> Result<Vec<u8>>;
    fn verify_next(
        &self,
        context: &[u8],
        aggregator: u8,
        state: &[u8],
        message: &[u8],
    ) -> Result<Vec<u8>>;
    fn leader_initialized(&self, setting: Setting<'_>, report: Incoming<'_>) -> Result<Started>;
    fn helper_initialized(
        &self,
        setting: Setting<'_>,
        report: Incoming<'_>,
        message: &[u8],
    ) -> Result<Finished>;
    fn leader_continued(&self, context: &[u8], state: &[u8], message: &[u8]) -> Result<Vec<u8>>;
    /// Adds shares to a share, all as bytes.
    fn add(&self, share: &[u8], others: &[&[u8]]) -> Result<Vec<u8>>;
    /// Adds whole numbers to a share.
    fn shift(&self, share: &[u8], numbers: &[i64]) -> Result<Vec<u8>>;
    /// Adds shares up, and reads the sums as whole numbers around zero.
    fn unshard(&self, shares: &[&[u8]]) -> Result<Vec<i128>>;
    /// Verifies reports as all aggregators would, and adds up what each of them gets.
    fn together(&self, setting: Setting<'_>, reports: &[Entire<'_>]) -> (Vec<Vec<u8>>, Outcomes);
}

/// What became of each report: why one was refused.
pub(super) type Outcomes = Vec<Option<Error>>;

/// A report with the shares of all aggregators.
#[derive(Debug, Clone, Copy)]
pub struct Entire<'a> {
    /// The nonce of the report.
    pub nonce: &'a [u8; NONCE_SIZE],
    /// The share for every aggregator.
    pub public_share: &'a [u8],
    /// The share for each aggregator, in their order.
    pub input_shares: &'a [&'a [u8]],
}

/// What aggregators agree on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setting<'a> {
    pub(super) verify_key: &'a [u8; VERIFY_KEY_SIZE],
    pub(super) context: &'a [u8],
}

/// The engine of one type.
#[derive(Debug)]
pub(super) struct Of<T: Measured> {
    vdaf: Vdaf<T>,
    typ: T,
    measure: Measure,
    aggregators: u8,
    sizes: Sizes,
    /// Of no report: shares and messages are read with it.
    template: State<T>,
}

impl<T: Measured> Of<T> {
    pub(super) fn new(typ: T, id: u32, measure: Measure, aggregators: u8) -> Option<Self> {
        let vdaf = Vdaf::new(aggregators, 1, id, typ.clone()).ok()?;
        let element = T::Field::ENCODED_SIZE;
        let seed = if typ.joint_rand_len() > 0 { SEED } else { 0 };
        let template =
            State::<T>::get_decoded_with_param(&(&vdaf, 1), &vec![0; SEED + seed]).ok()?;
        let sizes = Sizes {
            public_share: seed * usize::from(aggregators),
            leader_share: (typ.input_len() + typ.proof_len()) * element + seed,
            helper_share: SEED + seed,
            leader_state: typ.output_len() * element + seed,
            verifier_share: typ.verifier_len() * element + seed,
            verifier_message: seed,
            output_share: typ.output_len() * element,
            element,
        };
        Some(Self { vdaf, typ, measure, aggregators, sizes, template })
    }

    fn public_share(&self, bytes: &[u8]) -> Result<Prio3PublicShare<SEED>> {
        let what = "the public share";
        length(what, bytes, self.sizes.public_share)?;
        Prio3PublicShare::get_decoded_with_param(&self.vdaf, bytes)
            .or(Err(Error::Encoding { what }))
    }

    fn input_share(&self, aggregator: u8, bytes: &[u8]) -> Result<Prio3InputShare<T::Field, SEED>> {
        let what = "the input share";
        let (leader, helper) = (self.sizes.leader_share, self.sizes.helper_share);
        length(what, bytes, if aggregator == 0 { leader } else { helper })?;
        let parameter = (&self.vdaf, usize::from(aggregator));
        Prio3InputShare::get_decoded_with_param(&parameter, bytes).or(Err(Error::Encoding { what }))
    }

    fn state(&self, aggregator: u8, bytes: &[u8]) -> Result<State<T>> {
        let what = "the state";
        let (leader, helper) = (self.sizes.leader_state, self.sizes.helper_share);
        length(what, bytes, if aggregator == 0 { leader } else { helper })?;
        let parameter = (&self.vdaf, usize::from(aggregator));
        State::<T>::get_decoded_with_param(&parameter, bytes).or(Err(Error::Encoding { what }))
    }

    fn elements(&self, what: &'static str, bytes: &[u8]) -> Result<Vec<T::Field>> {
        length(what, bytes, self.sizes.output_share)?;
        let pieces = bytes.chunks_exact(self.sizes.element);
        pieces.map(|piece| T::Field::get_decoded(piece).or(Err(Error::Encoding { what }))).collect()
    }

    fn two(&self) -> Result<()> {
        let expected = "2 where a leader and a helper exchange messages";
        let value = self.aggregators.into();
        if value == 2 {
            return Ok(());
        }
        Err(Error::Parameter { argument: "aggregators", value, expected })
    }

    fn outputs(
        &self,
        setting: Setting<'_>,
        report: Entire<'_>,
    ) -> Result<Vec<OutputShare<T::Field>>> {
        let (expected, found) = (usize::from(self.aggregators), report.input_shares.len());
        if found != expected {
            return Err(Error::Parts { what: "input shares", expected, found });
        }
        let public = self.public_share(report.public_share)?;
        let (mut states, mut shares) = (Vec::new(), Vec::new());
        for (aggregator, bytes) in (0..self.aggregators).zip(report.input_shares) {
            let input = self.input_share(aggregator, bytes)?;
            let (state, share) = self.init(setting, aggregator, report.nonce, &public, &input)?;
            states.push(state);
            shares.push(share);
        }
        let message = self.vdaf.verifier_shares_to_message(setting.context, &(), shares);
        let message = message.or(Err(Error::Proof))?;
        states.into_iter().map(|state| self.next(setting.context, state, message.clone())).collect()
    }

    fn init(
        &self,
        setting: Setting<'_>,
        aggregator: u8,
        nonce: &[u8; NONCE_SIZE],
        public: &Prio3PublicShare<SEED>,
        input: &Prio3InputShare<T::Field, SEED>,
    ) -> Result<(State<T>, <Vdaf<T> as Aggregator<SEED, NONCE_SIZE>>::VerifierShare)> {
        let (key, aggregator) = (setting.verify_key, usize::from(aggregator));
        self.vdaf
            .verify_init(key, setting.context, aggregator, &(), nonce, public, input)
            .or(Err(Error::Proof))
    }

    fn next(
        &self,
        context: &[u8],
        state: State<T>,
        message: Prio3VerifierMessage<SEED>,
    ) -> Result<OutputShare<T::Field>> {
        match self.vdaf.verify_next(context, state, message) {
            Ok(VerifyTransition::Finish(share)) => Ok(share),
            // There is one round.
            _ => Err(Error::Proof),
        }
    }
}

impl<T: Measured + Send + Sync> Engine for Of<T>
where
    T::Field: Send + Sync,
{
    fn sizes(&self) -> Sizes {
        self.sizes
    }

    fn modulus(&self) -> u128 {
        // The largest element is one less.
        whole(-one::<T::Field>()) + 1
    }

    fn shard(&self, context: &[u8], numbers: &[u64], nonce: &[u8; NONCE_SIZE]) -> Result<Report> {
        let measurement = self.typ.measurement(numbers, &self.measure)?;
        // Prio draws from the generator of the thread, which a process that was forked has from its
        // parent, in the same state.
        rand::rng()
            .reseed()
            .map_err(|error| crate::Error::Entropy { reason: error.to_string() })?;
        let expected = "one that the parameters allow";
        let refused = || Error::Measurement { expected: expected.into() };
        let (public, inputs) =
            self.vdaf.shard(context, &measurement, nonce).map_err(|_| refused())?;
        let input_shares = inputs.iter().map(encoded).collect::<Result<_>>()?;
        Ok(Report { public_share: encoded(&public)?, input_shares })
    }

    fn verify_init(
        &self,
        setting: Setting<'_>,
        aggregator: u8,
        report: Incoming<'_>,
    ) -> Result<Started> {
        let public = self.public_share(report.public_share)?;
        let input = self.input_share(aggregator, report.input_share)?;
        let (state, share) = self.init(setting, aggregator, report.nonce, &public, &input)?;
        Ok(Started { state: encoded(&state)?, message: encoded(&share)? })
    }

    fn verifier_message(&self, context: &[u8], shares: &[&[u8]]) -> Result<Vec<u8>> {
        let what = "the verifier share";
        let (expected, found) = (usize::from(self.aggregators), shares.len());
        if found != expected {
            return Err(Error::Parts { what: "verifier shares", expected, found });
        }
        let decoded = shares.iter().map(|bytes| {
            length(what, bytes, self.sizes.verifier_share)?;
            ParameterizedDecode::get_decoded_with_param(&self.template, bytes)
                .or(Err(Error::Encoding { what }))
        });
        let shares: Vec<_> = decoded.collect::<Result<_>>()?;
        let message = self.vdaf.verifier_shares_to_message(context, &(), shares);
        encoded(&message.or(Err(Error::Proof))?)
    }

    fn verify_next(
        &self,
        context: &[u8],
        aggregator: u8,
        state: &[u8],
        message: &[u8],
    ) -> Result<Vec<u8>> {
        let what = "the verifier message";
        let state = self.state(aggregator, state)?;
        length(what, message, self.sizes.verifier_message)?;
        let message = Prio3VerifierMessage::get_decoded_with_param(&state, message)
            .or(Err(Error::Encoding { what }))?;
        encoded(&self.next(context, state, message)?)
    }

    fn leader_initialized(&self, setting: Setting<'_>, report: Incoming<'_>) -> Result<Started> {
        self.two()?;
        let public = self.public_share(report.public_share)?;
        let input = self.input_share(0, report.input_share)?;
        let (key, context, nonce) = (setting.verify_key, setting.context, report.nonce);
        let begun = self.vdaf.leader_initialized(key, context, &(), nonce, &public, &input);
        let begun = begun.or(Err(Error::Proof))?;
        Ok(Started { state: encoded(&begun.verifier_state)?, message: encoded(&begun.message)? })
    }

    fn helper_initialized(
        &self,
        setting: Setting<'_>,
        report: Incoming<'_>,
        message: &[u8],
    ) -> Result<Finished> {
        self.two()?;
        let public = self.public_share(report.public_share)?;
        let input = self.input_share(1, report.input_share)?;
        let message = exchanged(message, "initialize", self.sizes.verifier_share)?;
        let (key, context, nonce) = (setting.verify_key, setting.context, report.nonce);
        let begun = self
            .vdaf
            .helper_initialized(key, context, &(), nonce, &public, &input, &message)
            .map_err(|error| refusal(&error))?;
        match begun.evaluate(context, &self.vdaf) {
            Ok(PingPongState::FinishedWithOutbound { output_share, message }) => {
                Ok(Finished { output_share: encoded(&output_share)?, message: encoded(&message)? })
            }
            _ => Err(Error::Proof),
        }
    }

    fn leader_continued(&self, context: &[u8], state: &[u8], message: &[u8]) -> Result<Vec<u8>> {
        self.two()?;
        let state = self.state(0, state)?;
        let message = exchanged(message, "finish", self.sizes.verifier_message)?;
        let continued = self
            .vdaf
            .leader_continued(context, &(), state, &message)
            .map_err(|error| refusal(&error))?;
        match continued.evaluate(context, &self.vdaf) {
            Ok(PingPongState::Finished { output_share }) => encoded(&output_share),
            _ => Err(Error::Proof),
        }
    }

    fn add(&self, share: &[u8], others: &[&[u8]]) -> Result<Vec<u8>> {
        let mut total = self.elements("the aggregate share", share)?;
        for other in others {
            let other = self.elements("the output share", other)?;
            total.iter_mut().zip(other).for_each(|(sum, element)| *sum += element);
        }
        written(&total)
    }

    fn shift(&self, share: &[u8], numbers: &[i64]) -> Result<Vec<u8>> {
        let mut total = self.elements("the aggregate share", share)?;
        for (sum, number) in total.iter_mut().zip(numbers) {
            let size = element::<T::Field>(number.unsigned_abs());
            *sum += if *number < 0 { -size } else { size };
        }
        written(&total)
    }

    fn unshard(&self, shares: &[&[u8]]) -> Result<Vec<i128>> {
        let (expected, found) = (usize::from(self.aggregators), shares.len());
        if found != expected {
            return Err(Error::Parts { what: "aggregate shares", expected, found });
        }
        let total = self.add(&vec![0; self.sizes.output_share], shares)?;
        let modulus = self.modulus();
        let lifted = |sum: T::Field| {
            let number = whole(sum);
            let (below, negative) = (modulus - number, number > modulus / 2);
            let magnitude = if negative { below } else { number };
            // At most half of the modulus.
            let magnitude = i128::try_from(magnitude).unwrap_or(i128::MAX);
            if negative { -magnitude } else { magnitude }
        };
        Ok(self.elements("the aggregate share", &total)?.into_iter().map(lifted).collect())
    }

    fn together(&self, setting: Setting<'_>, reports: &[Entire<'_>]) -> (Vec<Vec<u8>>, Outcomes) {
        let zeros = || vec![element::<T::Field>(0); self.typ.output_len()];
        let mut sums: Vec<_> = (0..self.aggregators).map(|_| zeros()).collect();
        let outcomes = reports.iter().map(|report| match self.outputs(setting, *report) {
            Ok(shares) => {
                for (sum, share) in sums.iter_mut().zip(&shares) {
                    sum.iter_mut().zip(share.as_ref()).for_each(|(sum, share)| *sum += *share);
                }
                None
            }
            Err(error) => Some(error),
        });
        let outcomes = outcomes.collect();
        (sums.iter().map(|sum| written(sum).unwrap_or_default()).collect(), outcomes)
    }
}

fn length(what: &'static str, bytes: &[u8], expected: usize) -> Result<()> {
    let found = bytes.len();
    if found == expected { Ok(()) } else { Err(Error::Length { what, expected, found }) }
}

/// The message of the other aggregator; what it holds is of a known length.
fn exchanged(bytes: &[u8], kind: &str, holds: usize) -> Result<PingPongMessage> {
    let what = "the message of the other aggregator";
    length(what, bytes, 5 + holds)?;
    let message = PingPongMessage::get_decoded(bytes).or(Err(Error::Encoding { what }))?;
    let found = match message {
        PingPongMessage::Initialize { .. } => "initialize",
        PingPongMessage::Continue { .. } => "continue",
        PingPongMessage::Finish { .. } => "finish",
    };
    if found == kind { Ok(message) } else { Err(Error::Encoding { what }) }
}

/// What the exchange of two aggregators says of a report.
fn refusal(error: &prio::topology::ping_pong::PingPongError) -> Error {
    use prio::topology::ping_pong::PingPongError;
    match error {
        PingPongError::VdafVerifyInit(_)
        | PingPongError::VdafVerifierSharesToMessage(_)
        | PingPongError::VdafVerifyNext(_) => Error::Proof,
        _ => Error::Encoding { what: "the message of the other aggregator" },
    }
}

fn encoded(value: &impl Encode) -> Result<Vec<u8>> {
    value.get_encoded().or(Err(Error::Encoding { what: "what prio made" }))
}

fn written<F: FieldElement>(elements: &[F]) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(elements.len() * F::ENCODED_SIZE);
    for element in elements {
        element.encode(&mut bytes).or(Err(Error::Encoding { what: "what prio made" }))?;
    }
    Ok(bytes)
}

fn one<F: FieldElement>() -> F {
    element(1)
}

/// The element of a number below 2^63, from its little-endian bytes.
fn element<F: FieldElement>(number: u64) -> F {
    let mut bytes = u128::from(number).to_le_bytes().to_vec();
    bytes.truncate(F::ENCODED_SIZE);
    // Both moduli are above 2^63: zero is never taken.
    F::get_decoded(&bytes).unwrap_or_else(|_| F::half() - F::half())
}

fn whole<F: FieldElement>(element: F) -> u128 {
    let bytes: Vec<u8> = element.into();
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u128::from(*byte))
}
