"""The score of a head over all parties: accuracy, recall, ROC curve and calibration."""
