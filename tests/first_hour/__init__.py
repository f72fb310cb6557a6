"""The first hour of somebody new: each thing that the README says, in an environment that has nothing but its needs."""
