"""The SASL mechanisms without a broker."""
