"""Audits that try to falsify what privstats claims about its privacy."""
