"""Tasks of the Distributed Aggregation Protocol (DAP, draft-ietf-ppm-dap-18).

A task is a question with two aggregators. Every client splits its answer into a share for each of
them, with a proof that it is one answer. The leader receives reports, both aggregators verify and
add them up, each adds its own noise, and a collector gets the sum. `files` has the file for each of
these roles, `making` makes the files (`janus` for servers of Janus), `vdaf` says what a report
measures, `records` is what an aggregator remembers, `helper` and `leader` (with `jobs`,
`collections` and `driving`) are the aggregators, `peers` makes requests, and `client` and
`collector` are the other two.
"""
