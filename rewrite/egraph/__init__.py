"""The e-graph over programs (architecture.md, The e-graph): what a program computes as a dataflow of kernels, saturated by the
strategies of the catalogue in a child process, and read back as programs.

    with Saturator() as saturator:
        result = saturator.saturate(program, Options())
    print(result.report.text())
    for member in programs(result, Random(0), 20): ...

| file | holds |
|---|---|
| `templates`, `dataflow` | a program as kernels over tensor values |
| `schema`, `adapter`, `engine` | the same in egglog, and its classes back |
| `scalars`, `terms` | the scalar level: bodies as terms, native rules, analyses |
| `classes`, `assemble` | choosing kernels, and the program that they make |
| `offers`, `growth`, `saturate` | work for the strategies, and what they make of it, phase by phase |
| `child`, `child_process` | the process that it runs in |
| `report`, `result`, `explain` | what came of it: why it stopped, members, and the steps that lead to one |
"""
