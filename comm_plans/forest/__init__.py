"""ForestColl: spanning trees that move data at a network's exact optimum (Zhao et al., arXiv 2402.06787).

The way of an all_gather: `optimum` finds the rate and the cut that limits it, `few_trees` how many whole trees reach
it; `shallow_trees` grows them by counting where the network is regular enough (`numbering`, `symmetry`, `routes`);
else `general` removes the switches, packs trees between ranks and leads them back to links. `collectives` chooses.
"""
