from turnout.accounting import paper as paper
from turnout.accounting.batches import FixedSizeBatches as FixedSizeBatches
from turnout.accounting.batches import RandomCheckIns as RandomCheckIns
from turnout.accounting.batches import ShuffledBatches as ShuffledBatches
from turnout.accounting.calibration import calibrate as calibrate
from turnout.accounting.calibration import calibrate_noise as calibrate_noise
from turnout.accounting.composition import Composition as Composition
from turnout.accounting.counts import CountSampling as CountSampling
from turnout.accounting.counts import TwoStageCountSampling as TwoStageCountSampling
from turnout.accounting.guarantee import Guarantee as Guarantee
from turnout.accounting.histories import from_flower as from_flower
from turnout.accounting.histories import from_opacus as from_opacus
from turnout.accounting.integer_noise import DiscreteGaussianNoise as DiscreteGaussianNoise
from turnout.accounting.integer_noise import DiscreteLaplaceNoise as DiscreteLaplaceNoise
from turnout.accounting.integer_noise import SkellamNoise as SkellamNoise
from turnout.accounting.integer_noise import (
    SummedDiscreteGaussianNoise as SummedDiscreteGaussianNoise,
)
from turnout.accounting.ledger import PrivacyLedger as PrivacyLedger
from turnout.accounting.ledger_entries import LedgerEntry as LedgerEntry
from turnout.accounting.mechanism import Mechanism as Mechanism
from turnout.accounting.mechanism import compose as compose
from turnout.accounting.noisy_sums import NoisySums as NoisySums
from turnout.accounting.participation import CentralShuffling as CentralShuffling
from turnout.accounting.participation import GaussianMechanism as GaussianMechanism
from turnout.accounting.participation import LocalSampling as LocalSampling
from turnout.accounting.participation import RandomParticipation as RandomParticipation
from turnout.accounting.participation import WeakClientSampling as WeakClientSampling
from turnout.accounting.pictures import plot as plot
from turnout.accounting.shuffling import Shuffled as Shuffled
from turnout.accounting.thresholded import SampleAndThreshold as SampleAndThreshold
from turnout.accounting.values import Bracket as Bracket
from turnout.accounting.variation import VariationRatio as VariationRatio
