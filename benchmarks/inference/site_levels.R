# Fit lmer or glmer, by the first word, to many runs of pooled records: site, x1, x2, outcome, float64 by rows. Print, per
# run: fixed effects, standard errors, tau, and the profile interval of lmer's tau.
suppressMessages(library(lme4))
words <- commandArgs(trailingOnly = TRUE)
linear <- words[1] == "lmer"
file <- file(words[2], "rb")
quiet <- function(value) suppressWarnings(suppressMessages(value))
for (n in as.integer(words[-(1:2)])) {
  data <- as.data.frame(matrix(readBin(file, "double", 4 * n), ncol = 4, byrow = TRUE))
  model <- V4 ~ V2 + V3 + (1 | V1)
  fit <- quiet(if (linear) lmer(model, data) else glmer(model, data, family = binomial))
  profile <- function() tryCatch(quiet(confint(fit, parm = "theta_", quiet = TRUE))[1, ], error = function(e) c(NA, NA))
  ends <- if (linear) profile()
  cat(fixef(fit), sqrt(diag(as.matrix(vcov(fit)))), as.data.frame(VarCorr(fit))$sdcor[1], ends, "\n")
}
