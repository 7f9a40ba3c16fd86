"""What attention in vision transformers costs: on paper, counted, and on hardware."""

__version__ = "0.5.0"
