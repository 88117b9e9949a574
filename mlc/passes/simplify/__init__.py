"""The phase `simplify`: shapes become index arithmetic, constants fold, weights move to the store."""
