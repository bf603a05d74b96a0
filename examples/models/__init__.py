"""Models in the style of serving engines, for the specs that need one."""
