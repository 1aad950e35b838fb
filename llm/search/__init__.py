"""Searches over programs: any policy, any evaluator, one budget, one way to count (architecture.md).

    policy      proposes a node's next candidates: chance, a cost model, or a language model behind an HTTP endpoint
    evaluator   says how fast a program is, in seconds: modelled, or measured and verified
    budget      how many programs may be evaluated, and a few more limits
    search      what the algorithms share: nodes, visited keys, the run file
    greedy, beam  the algorithms, which hold little else

Whatever proposed it, a candidate is a legal step with its proofs, or a program that execution found equal to the original.
"""
