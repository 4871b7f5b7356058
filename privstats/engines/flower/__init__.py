"""Parties on machines of their own, over Flower: a pure loop, two folders, and two apps that run this code only."""
