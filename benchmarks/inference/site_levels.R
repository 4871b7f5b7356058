# Fit lmer to many runs of pooled records: site, x1, x2, y, float64 by rows. Print, per run: fixed effects, standard
# errors, tau, and its profile interval.
suppressMessages(library(lme4))
words <- commandArgs(trailingOnly = TRUE)
sizes <- as.integer(words[-1])
file <- file(words[1], "rb")
for (n in sizes) {
  data <- as.data.frame(matrix(readBin(file, "double", 4 * n), ncol = 4, byrow = TRUE))
  fit <- suppressWarnings(suppressMessages(lmer(V4 ~ V2 + V3 + (1 | V1), data)))
  ends <- tryCatch(
    suppressWarnings(suppressMessages(confint(fit, parm = "theta_", quiet = TRUE)))[1, ],
    error = function(e) c(NA, NA)
  )
  cat(fixef(fit), sqrt(diag(as.matrix(vcov(fit)))), as.data.frame(VarCorr(fit))$sdcor[1], ends, "\n")
}
