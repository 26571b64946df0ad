from turnout.mean.estimate import MeanEstimate as MeanEstimate
from turnout.mean.estimate import MeanInterval as MeanInterval
from turnout.mean.groups import GroupedMeanEstimate as GroupedMeanEstimate
from turnout.mean.mechanism import Duchi as Duchi
from turnout.mean.mechanism import Hybrid as Hybrid
from turnout.mean.mechanism import MeanMechanism as MeanMechanism
from turnout.mean.mechanism import Piecewise as Piecewise
from turnout.mean.tally import MeanTally as MeanTally
