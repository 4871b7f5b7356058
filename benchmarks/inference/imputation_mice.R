# Impute the records of each run by mice, fit a linear model to each completion, and print pooled estimates and ends.
# Rscript imputation_mice.R FILE RUNS RECORDS COLUMNS MODEL; FILE holds doubles, row by row, NaN for a gap.
suppressPackageStartupMessages(library(mice))
words <- commandArgs(TRUE)
runs <- as.integer(words[2]); records <- as.integer(words[3]); columns <- as.integer(words[4])
model <- as.formula(words[5])
file <- file(words[1], "rb")
for (run in seq_len(runs)) {
  set.seed(run)
  table <- matrix(readBin(file, "double", records * columns), records, columns, byrow = TRUE)
  table[is.nan(table)] <- NA
  imputed <- mice(as.data.frame(table), m = 20, method = "norm", printFlag = FALSE)
  fits <- lapply(seq_len(20), function(m) lm(model, complete(imputed, m)))
  pooled <- summary(pool(as.mira(fits)), conf.int = TRUE)
  cat(format(c(pooled$estimate, pooled$`2.5 %`, pooled$`97.5 %`), digits = 10), "\n")
}
