"""Read the records of one call as tiles of numbers, from what a schema states of them.

No module here knows a kind of schema. What cannot be read is refused or excluded, record by record.
"""
