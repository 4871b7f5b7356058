# Fit lmer (words[1] "gaussian") or glmer ("binomial") to many runs of pooled records: site, x1, x2, outcome, float64 by
# rows. Print, per run: fixed effects, standard errors, tau, and lmer's profile interval of tau.
suppressMessages(library(lme4))
words <- commandArgs(trailingOnly = TRUE)
file <- file(words[2], "rb")
model <- V4 ~ V2 + V3 + (1 | V1)
for (n in as.integer(words[-(1:2)])) {
  data <- as.data.frame(matrix(readBin(file, "double", 4 * n), ncol = 4, byrow = TRUE))
  found <- suppressWarnings(suppressMessages({
    fit <- if (words[1] == "binomial") glmer(model, data, family = binomial) else lmer(model, data)
    ends <- c(NA, NA)
    if (words[1] == "gaussian") {
      ends <- tryCatch(confint(fit, parm = "theta_", quiet = TRUE)[1, ], error = function(e) ends)
    }
    c(fixef(fit), sqrt(diag(as.matrix(vcov(fit)))), as.data.frame(VarCorr(fit))$sdcor[1], ends)
  }))
  cat(found, "\n")
}
