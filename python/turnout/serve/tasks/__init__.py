"""Tasks of the Distributed Aggregation Protocol (DAP, draft-ietf-ppm-dap-18).

A task is a question with two aggregators. Every client splits its answer into a share for each of
them, with a proof that it is one answer; the leader takes reports in, both verify and add them up,
each adds its own noise, and a collector gets the sum. `files` has what each of them is told,
`making` makes it (`janus` for servers of Janus), `votes` says what a report measures, `records` is
what an aggregator remembers, `helper` and `leader` (with `jobs`, `collections` and `driving`) are
the aggregators, `peers` makes requests, and `client` and `collector` are the other two.
"""
