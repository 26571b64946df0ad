from turnout_reproduce.training.network import ConvolutionalNetwork as ConvolutionalNetwork
from turnout_reproduce.training.scenarios import Arm as Arm
from turnout_reproduce.training.scenarios import Scenario as Scenario
from turnout_reproduce.training.scenarios import arms_of as arms_of
