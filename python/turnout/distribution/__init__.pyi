from turnout.distribution.estimate import DistributionEstimate as DistributionEstimate
from turnout.distribution.estimate import DistributionInterval as DistributionInterval
from turnout.distribution.estimate import DistributionQuantile as DistributionQuantile
from turnout.distribution.groups import GroupedDistributionEstimate as GroupedDistributionEstimate
from turnout.distribution.law import BinnedBounds as BinnedBounds
from turnout.distribution.law import WaveLaw as WaveLaw
from turnout.distribution.square_wave import DistributionTally as DistributionTally
from turnout.distribution.square_wave import SquareWave as SquareWave
