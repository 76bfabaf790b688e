"""Small linear algebra with safe derivatives, Jacobians as outer products, and draws of normal numbers.

Matrices that act on data are stored by rows: a factor `B` (k, P) stands for the precision `B' B`, so that
each row lies contiguously in memory. Import from the modules.
"""
