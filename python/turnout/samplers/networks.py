import numpy as np


class DenseNetwork:
    @classmethod
    def from_mlp(cls, c, shift=None, scale=None):
        s = cls()
        s.W = c.coefs_
        s.b = c.intercepts_
        s.shift = shift
        s.scale = scale
        s.act = c.activation
        return s

    def logit(self, X):
        h = (X - self.shift) / self.scale
        for i, (w, b) in enumerate(zip(self.W, self.b)):
            h = h @ w + b
            if i < len(self.W) - 1:
                h = np.tanh(h)
        return h[:, 0]


class DenseNetworks:
    def __init__(self, networks, weights, clip):
        self.n = networks
        self.t = weights
        self.c = clip

    def scores(self, X):
        return sum(t * np.clip(n.logit(X), -self.c, self.c) for n, t in zip(self.n, self.t))
