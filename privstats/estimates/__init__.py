"""Estimates from noisy sums that a course and the heads share: spectra, weights, and the recipe of refinement.

Functions of real numbers and known noise levels, without plans, releases or randomness. The course uses them to choose
what the next round publishes, and the heads to choose their predictions.

Estimates that a course and a head share are in a lower layer. The plans of a refinement follow from denoised spectra
and Wiener weights, which heads use too, and a course may not import heads. ``privstats/estimates`` takes arrays and
noise levels and knows neither plan nor release; estimates that start from a head's evidence stay in
``heads/estimates``. A course that calibrates ``LDA`` publishes its scores, so what ``LDA`` makes of class sums is
here (``discriminant.py``), and the head calls it.
"""
