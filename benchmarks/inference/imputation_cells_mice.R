# Impute the factors of each run by mice, fit a logistic model of the last to each completion, and print pooled
# estimates and ends. Rscript imputation_cells_mice.R FILE RUNS RECORDS COLUMNS; FILE holds doubles, row by row.
suppressPackageStartupMessages(library(mice))
words <- commandArgs(TRUE)
runs <- as.integer(words[2]); records <- as.integer(words[3]); columns <- as.integer(words[4])
file <- file(words[1], "rb")
for (run in seq_len(runs)) {
  set.seed(run)
  table <- matrix(readBin(file, "double", records * columns), records, columns, byrow = TRUE)
  table[is.nan(table)] <- NA
  table <- as.data.frame(lapply(as.data.frame(table), factor))
  model <- as.formula(paste0("V", columns, " ~ ", paste0("V", seq_len(columns - 1), collapse = " + ")))
  several <- sum(colSums(is.na(table)) > 0) > 1  # one column with gaps needs no iterations
  imputed <- mice(table, m = 20, maxit = if (several) 5 else 1, printFlag = FALSE)
  fits <- lapply(seq_len(20), function(m) glm(model, binomial, complete(imputed, m)))
  pooled <- summary(pool(as.mira(fits)), conf.int = TRUE)
  cat(format(c(pooled$estimate, pooled$`2.5 %`, pooled$`97.5 %`), digits = 10), "\n")
}
