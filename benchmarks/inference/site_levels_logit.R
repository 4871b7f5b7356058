# Fit glmer to many runs of pooled records: site, x1, x2, outcome, float64 by rows. Print, per run: fixed effects,
# standard errors and tau.
suppressMessages(library(lme4))
words <- commandArgs(trailingOnly = TRUE)
sizes <- as.integer(words[-1])
file <- file(words[1], "rb")
for (n in sizes) {
  data <- as.data.frame(matrix(readBin(file, "double", 4 * n), ncol = 4, byrow = TRUE))
  fit <- suppressWarnings(suppressMessages(glmer(V4 ~ V2 + V3 + (1 | V1), data, family = binomial)))
  cat(fixef(fit), sqrt(diag(as.matrix(vcov(fit)))), as.data.frame(VarCorr(fit))$sdcor[1], "\n")
}
