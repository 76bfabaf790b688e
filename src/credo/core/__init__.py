"""The foundation of all other rooms: records, trees, keys, files and errors.

Nothing here knows what a belief or a likelihood is. The folder exports nothing at its top, so that
`credo.core.errors` can be imported without JAX; import from the modules.
"""
