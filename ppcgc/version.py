"""Version of ppcgc, and of the contract between generated code and the runtime."""

VERSION = "0.1.0"
ABI = 4  # equal to ppcgc.runtime.abi.ABI, which a test holds
