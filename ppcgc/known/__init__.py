"""Numbers that a spec leaves to the build, as far as they are known before it.

``given`` reads a config and values from the command line, ``sizes`` gathers what follows from
them, ``stages`` cuts the layers.
"""
