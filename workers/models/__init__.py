"""The zoo: small models with seeded weights, one file each, loaded on demand.

Nothing is fetched when a model loads. The name table is `configs/models.yaml`; only
`workers.backends` imports these files. Random weights time like trained ones, except for work that
depends on the data and for subnormal numbers, so the table asks for flushed denormals.
"""
